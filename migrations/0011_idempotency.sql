-- The answers of requests that carried an Idempotency-Key, so that a repeat gets the same one.
-- One new table; nothing that exists is locked. The previous release does not know it: it goes on keeping the keys of the
-- requests that are events with those events, and ignores the others.

CREATE TABLE idempotency_answers (
    project_id  bigint NOT NULL,                        -- of the key that asked. No foreign key: a request that deletes its
                                                        -- own project would wait for itself
    key         text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    print       bytea NOT NULL,                         -- digest of the request and of what its API key may do
    status      smallint CHECK (status BETWEEN 200 AND 299),    -- NULL: the request still runs. A refused one is not kept
    answer      text,                                   -- the body; where a secret stood that is shown once, null
    lease_until timestamptz,                            -- until then nobody else carries it out
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, key),
    CHECK ((status IS NULL) = (answer IS NULL)),
    CHECK ((status IS NULL) = (lease_until IS NOT NULL))
);
CREATE INDEX idempotency_answers_old ON idempotency_answers (made_at);
