-- Approximate indexes for what is too large to be compared vector by vector: one HNSW graph for a scope, or for a project.
--
-- A search that meets more rows than it compares (20,000) wishes for an index by a row here, and compares them all meanwhile;
-- a worker builds it, without a lock that a request would wait for. Each is a partial index of memory_vectors, so that small
-- scopes, which are nearly all, cost nothing: adding to a graph takes some milliseconds a row.
-- Takes no lock on an existing table. The previous release does not notice, and its searches go on comparing.

CREATE TABLE vector_indexes (
    project_id  bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    scope_id    bigint NOT NULL,                        -- 0: all scopes of the project
    model       text NOT NULL REFERENCES embedding_models,
    name        text NOT NULL GENERATED ALWAYS AS
                    ('memory_vectors_near_' || project_id || '_' || scope_id || '_' || left(md5(model), 8)) STORED,
    wanted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz,                            -- a worker builds it; or it is not tried again before then
    refused     text,                                   -- why it could not be built
    built_at    timestamptz,                            -- NULL: searches do not use it yet
    PRIMARY KEY (project_id, scope_id, model)
);
