-- Members, webhook endpoints, the role of a key, and which organization made another.
-- New tables, and three columns with constant defaults: each ALTER TABLE locks its small directory table for an instant
-- and rewrites nothing. The previous release does not notice: its keys become owners' keys, as all keys were.

ALTER TABLE organizations                               -- its owners' keys reach the organizations that they made
    ADD COLUMN creator_id bigint REFERENCES organizations ON DELETE SET NULL;
CREATE INDEX organizations_creator ON organizations (creator_id);

ALTER TABLE api_keys                                    -- owner: may make and delete projects, and see those of the organization
    ADD COLUMN role text NOT NULL DEFAULT 'owner' CHECK (role IN ('owner', 'member'));

-- An address is a member, with an account or without one. What a request may do, its key decides.
CREATE TABLE organization_members (
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    email           text NOT NULL CHECK (email <> ''),
    email_folded    text NOT NULL GENERATED ALWAYS AS (lower(email)) STORED,        -- its identity
    role            text NOT NULL CHECK (role IN ('READER', 'OWNER')),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, email_folded)
);

CREATE TABLE project_members (
    project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    email        text NOT NULL CHECK (email <> ''),
    email_folded text NOT NULL GENERATED ALWAYS AS (lower(email)) STORED,
    role         text NOT NULL CHECK (role IN ('READER', 'OWNER')),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, email_folded)
);

INSERT INTO organization_members (organization_id, email, role) SELECT id, 'admin@localhost', 'OWNER' FROM organizations;
INSERT INTO project_members (project_id, email, role) SELECT id, 'admin@localhost', 'OWNER' FROM projects;

CREATE TABLE webhooks (
    project_id  bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id          text NOT NULL,                          -- `wh_` + 20 characters
    name        text NOT NULL CHECK (name <> ''),
    url         text NOT NULL,
    event_types text[] NOT NULL CHECK (cardinality(event_types) > 0),
    is_active   boolean NOT NULL DEFAULT true,
    owner       text NOT NULL,                          -- address of whoever made it
    secret      text NOT NULL,                          -- `whsec_` + base64; signing needs it whole, and no answer shows it again
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, id)
);
