-- Deliveries to webhook endpoints: the outbox of changes, and the log of every attempt.
-- Two new tables; columns with constant defaults on webhooks, whose ALTER TABLE locks it for an instant and rewrites
-- nothing; and an index on history, which locks that against writes for about two seconds on a million rows, fewer as most
-- are no deletions. The previous release does not notice; what it changes is not delivered.

ALTER TABLE webhooks
    ADD COLUMN former_secrets  jsonb NOT NULL DEFAULT '[]',     -- [{"secret", "until"}]: sign too, after a rotation
    ADD COLUMN failing_since   timestamptz,                     -- first of an unbroken row of failed attempts
    ADD COLUMN failed_at       timestamptz,                     -- last of them
    ADD COLUMN disabled_reason text;                            -- why memoryd made it inactive; NULL: it did not

CREATE TABLE deliveries (                                       -- one change to one endpoint
    project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),       -- the header webhook-id, the same at every attempt
    seq          bigint GENERATED ALWAYS AS IDENTITY,           -- order of the changes, as far as there is one
    endpoint_id  text NOT NULL,
    event_type   text NOT NULL,
    event_id     uuid,                                          -- the request that the change belongs to
    memory_id    uuid,
    user_id      text,
    agent_id     text,
    app_id       text,
    run_id       text,
    details      jsonb NOT NULL,                                -- `event_details` of the body
    status       text NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED')),
    attempts     integer NOT NULL DEFAULT 0,                    -- since it was made or replayed
    next_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until  timestamptz,
    lease_epoch  integer NOT NULL DEFAULT 0,                    -- fence: grows with every claim
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at timestamptz,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, endpoint_id) REFERENCES webhooks ON DELETE CASCADE,
    CHECK ((status = 'RUNNING') = (lease_until IS NOT NULL)),
    CHECK ((status IN ('SUCCEEDED', 'FAILED')) = (completed_at IS NOT NULL))
) WITH (fillfactor = 80);
CREATE INDEX deliveries_due ON deliveries (project_id, endpoint_id, next_at, seq) WHERE status = 'PENDING';
CREATE INDEX deliveries_running ON deliveries (project_id, endpoint_id) WHERE status = 'RUNNING';
CREATE INDEX deliveries_lease ON deliveries (lease_until) WHERE status = 'RUNNING';
CREATE INDEX deliveries_newest ON deliveries (project_id, endpoint_id, seq DESC);
CREATE INDEX deliveries_age ON deliveries (created_at);

CREATE TABLE delivery_attempts (
    project_id  bigint NOT NULL,
    delivery_id uuid NOT NULL,
    seq         bigint GENERATED ALWAYS AS IDENTITY,
    started_at  timestamptz NOT NULL,
    status_code integer,                                        -- NULL: there was no answer
    latency_ms  integer,
    error_code  text,                                           -- why there was none
    error       text,
    response    text,                                           -- first kilobyte of the answer
    PRIMARY KEY (project_id, delivery_id, seq),
    FOREIGN KEY (project_id, delivery_id) REFERENCES deliveries ON DELETE CASCADE
);

-- A deletion of many memories is announced from its history.
CREATE INDEX history_deleted ON history (project_id, event_id) WHERE event = 'DELETE';
