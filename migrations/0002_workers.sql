-- Which workers live, so that readiness can tell an idle queue from an absent worker.
-- New table: no lock on anything that is in use, and the previous release does not notice it.
-- Unlogged: after a crash of the server nothing in it is true any more.

CREATE UNLOGGED TABLE workers (
    id         text PRIMARY KEY,                        -- host, process and a random part
    slots      integer NOT NULL,                        -- events that it processes at the same time
    running    integer NOT NULL,                        -- events that it processes now
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
