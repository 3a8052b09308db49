-- Exports that a schema shapes, and profiles of users and agents. New tables alone: no lock on anything that is in use,
-- and the previous release does not notice.
-- What the caller's schema shapes is `json`, not `jsonb`: keys stay as they were given, and in their order.

CREATE TABLE exports (
    project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id           uuid NOT NULL,                         -- of its event, too
    schema       json NOT NULL,
    instructions text,
    filters      jsonb NOT NULL,
    null_scoping boolean NOT NULL,                      -- of the project when it was asked for
    scope_ids    bigint[] NOT NULL DEFAULT '{}',        -- whose memories are in the result
    result       json,                                  -- null until it is made
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, id)
);
CREATE INDEX exports_newest ON exports (project_id, created_at DESC);
CREATE INDEX exports_age ON exports (created_at);

CREATE TABLE profile_settings (
    project_id bigint PRIMARY KEY REFERENCES projects ON DELETE CASCADE,
    enabled    boolean NOT NULL DEFAULT false,
    entities   json NOT NULL DEFAULT '{}',              -- by kind: schema, custom_instructions
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE profiles (
    project_id       bigint NOT NULL,
    kind             text NOT NULL CHECK (kind IN ('user', 'agent')),
    name             text NOT NULL,
    event_id         uuid NOT NULL,                     -- the job that makes it, or has made it
    status           text NOT NULL CHECK (status IN ('pending', 'succeeded', 'insufficient_data', 'failed')),
    profile          json,
    error            text,
    generation_count integer NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, kind, name),
    FOREIGN KEY (project_id, kind, name) REFERENCES owners (project_id, kind, name) ON DELETE CASCADE,
    CHECK ((status = 'succeeded') = (profile IS NOT NULL))
);
