-- What an erase of an owner looks things up by, and the owners that went along with another one.
-- One new table; six partial indexes, whose CREATE INDEX locks events and deliveries against writes for about a second on
-- a million rows each. The previous release does not notice.

-- An owner that only the erased one's memories named is erased with it. Whoever walks through a list of owners and deletes
-- each finds its turn done, not an unknown owner. For an hour, by a digest: the name is gone.
CREATE TABLE erased_owners (
    project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('user', 'agent', 'app', 'run')),
    owner_id   bigint NOT NULL,                         -- the number that it had
    digest     bytea NOT NULL CHECK (octet_length(digest) = 32),        -- SHA-256 of project, kind and name
    erased_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, kind, owner_id)
);
CREATE INDEX erased_owners_digest ON erased_owners (project_id, digest);
CREATE INDEX erased_owners_age ON erased_owners (erased_at);

-- Events that are no adds name memories and owners in their payload alone.
CREATE INDEX events_not_adds ON events (project_id, kind) WHERE kind <> 'ADD';

CREATE INDEX deliveries_memory ON deliveries (project_id, memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX deliveries_user ON deliveries (project_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX deliveries_agent ON deliveries (project_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX deliveries_app ON deliveries (project_id, app_id) WHERE app_id IS NOT NULL;
CREATE INDEX deliveries_run ON deliveries (project_id, run_id) WHERE run_id IS NOT NULL;
