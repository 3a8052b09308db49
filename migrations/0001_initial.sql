-- The first schema. Nothing exists before it, so no lock matters.
--
-- organizations, projects, api_keys and embedding_models are the directory: small, the same on every node.
-- Everything else belongs to one project, and every primary and unique key of it begins with project_id.

CREATE EXTENSION IF NOT EXISTS vector;

-- Directory ----------------------------------------------------------------------------------------------------------

CREATE TABLE organizations (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id  text NOT NULL UNIQUE,
    name       text NOT NULL CHECK (name <> ''),
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE projects (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    public_id       text NOT NULL UNIQUE,
    organization_id bigint NOT NULL REFERENCES organizations ON DELETE CASCADE,
    name            text NOT NULL CHECK (name <> ''),
    description     text,
    settings        jsonb NOT NULL DEFAULT '{}',        -- model.ProjectSettings; absent keys mean defaults
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX projects_organization ON projects (organization_id);

CREATE TABLE api_keys (
    project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id           uuid NOT NULL,
    name         text NOT NULL,
    prefix       text NOT NULL,                         -- enough to recognise a key, too little to use it
    digest       bytea NOT NULL CHECK (octet_length(digest) = 32),  -- SHA-256 of the whole key
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at   timestamptz,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX api_keys_digest ON api_keys (digest);

CREATE TABLE embedding_models (                         -- what the stored vectors were made with
    model      text PRIMARY KEY,
    dims       integer NOT NULL CHECK (dims > 0),
    created_at timestamptz NOT NULL DEFAULT now()
);

-- Owners and scopes --------------------------------------------------------------------------------------------------

CREATE TABLE owners (
    project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id         bigint GENERATED ALWAYS AS IDENTITY,
    kind       text NOT NULL CHECK (kind IN ('user', 'agent', 'app', 'run')),
    name       text NOT NULL CHECK (name <> ''),        -- the id that the caller uses
    metadata   jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, kind, name)
);

CREATE TABLE scopes (
    project_id   bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    user_id      text,
    agent_id     text,
    app_id       text,
    run_id       text,
    -- The four as one short value: four ids of 255 characters do not fit into an index entry. The lengths keep them apart.
    owners_hash  text COLLATE "C" NOT NULL GENERATED ALWAYS AS (md5(
        coalesce('u' || length(user_id)::text || ':' || user_id, '')
        || coalesce('a' || length(agent_id)::text || ':' || agent_id, '')
        || coalesce('p' || length(app_id)::text || ':' || app_id, '')
        || coalesce('r' || length(run_id)::text || ':' || run_id, ''))) STORED,
    memory_count bigint NOT NULL DEFAULT 0 CHECK (memory_count >= 0),   -- n of BM25
    term_total   bigint NOT NULL DEFAULT 0 CHECK (term_total >= 0),     -- sum of document lengths of BM25
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, owners_hash),
    CHECK (num_nonnulls(user_id, agent_id, app_id, run_id) > 0)
);
CREATE INDEX scopes_user ON scopes (project_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX scopes_agent ON scopes (project_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX scopes_app ON scopes (project_id, app_id) WHERE app_id IS NOT NULL;
CREATE INDEX scopes_run ON scopes (project_id, run_id) WHERE run_id IS NOT NULL;

-- Events: the truth about accepted work, and the outbox of the queue --------------------------------------------------

CREATE TABLE events (
    project_id          bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id                  uuid NOT NULL,
    seq                 bigint GENERATED ALWAYS AS IDENTITY,    -- order of acceptance
    kind                text NOT NULL,
    status              text NOT NULL DEFAULT 'PENDING' CHECK (status IN ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED')),
    scope_id            bigint,
    target_scope_ids    bigint[] NOT NULL DEFAULT '{}',         -- scopes that its memories may go to
    cancelled_scope_ids bigint[] NOT NULL DEFAULT '{}',         -- targets that a delete_all emptied meanwhile
    payload             jsonb NOT NULL,
    idempotency_key     text,
    idempotency_print   bytea,                                  -- digest of the request body
    attempts            integer NOT NULL DEFAULT 0,
    next_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until         timestamptz,
    lease_epoch         integer NOT NULL DEFAULT 0,             -- fence: grows with every claim
    checkpoint          jsonb,                                  -- validated facts, so that a retry never asks the model again
    results             jsonb NOT NULL DEFAULT '[]',
    metadata            jsonb,
    error_code          text,
    error               text,
    created_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at          timestamptz,
    completed_at        timestamptz,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, scope_id) REFERENCES scopes ON DELETE SET NULL (scope_id),
    CHECK ((status = 'RUNNING') = (lease_until IS NOT NULL)),
    CHECK ((status IN ('SUCCEEDED', 'FAILED')) = (completed_at IS NOT NULL))
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX events_idempotency ON events (project_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX events_one_running ON events (project_id, scope_id) WHERE status = 'RUNNING';
CREATE INDEX events_due ON events (project_id, next_at, seq) WHERE status = 'PENDING';
CREATE INDEX events_open ON events (project_id, scope_id, seq) WHERE status IN ('PENDING', 'RUNNING');
CREATE INDEX events_lease ON events (lease_until) WHERE status = 'RUNNING';
CREATE INDEX events_newest ON events (project_id, seq DESC);

-- Messages: the contextual window, and the sources of memories ---------------------------------------------------------

CREATE TABLE messages (
    project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id         uuid NOT NULL,                           -- version 7: order of ids is order of saying
    scope_id   bigint NOT NULL,
    event_id   uuid NOT NULL,
    position   integer NOT NULL,
    role       text NOT NULL,
    name       text,
    content    text NOT NULL,
    said_at    timestamptz NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, scope_id) REFERENCES scopes ON DELETE CASCADE
);
CREATE INDEX messages_newest ON messages (project_id, scope_id, id DESC);
CREATE INDEX messages_event ON messages (project_id, event_id);

-- Memories and what finds them ------------------------------------------------------------------------------------------

CREATE TABLE memories (
    project_id      bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id              uuid NOT NULL,
    scope_id        bigint NOT NULL,
    user_id         text,                               -- the scope's owners once more: filters and reads need no join
    agent_id        text,
    app_id          text,
    run_id          text,
    text            text NOT NULL CHECK (text <> ''),
    hash            text NOT NULL,                      -- MD5 of the text
    role            text,
    actor           text,
    metadata        jsonb,
    categories      text[],
    immutable       boolean NOT NULL DEFAULT false,
    expiration_date date,
    state           text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'superseded', 'merged')),
    replaced_by     uuid,
    synthesized     boolean NOT NULL DEFAULT false,
    event_id        uuid,
    position        integer NOT NULL DEFAULT 0,
    happened_from   timestamptz,
    happened_to     timestamptz,
    lexemes         text[] NOT NULL DEFAULT '{}',       -- its keys in terms, so that they are found again on delete
    term_count      integer NOT NULL DEFAULT 0,         -- document length of BM25
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, scope_id, hash),                -- one live copy of a text in a scope
    FOREIGN KEY (project_id, scope_id) REFERENCES scopes ON DELETE CASCADE
);
CREATE INDEX memories_newest ON memories (project_id, scope_id, created_at DESC, id DESC);

CREATE TABLE memory_vectors (                           -- apart from the text: updates and scans touch fewer pages
    project_id bigint NOT NULL,
    scope_id   bigint NOT NULL,
    memory_id  uuid NOT NULL,
    model      text NOT NULL REFERENCES embedding_models,       -- two models never rank together
    embedding  halfvec NOT NULL,
    PRIMARY KEY (project_id, scope_id, model, memory_id),
    FOREIGN KEY (project_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_vectors_memory ON memory_vectors (project_id, memory_id);

CREATE TABLE terms (                                    -- postings of the keyword arm; document frequencies are counted, not kept
    project_id bigint NOT NULL,
    scope_id   bigint NOT NULL,
    term       text COLLATE "C" NOT NULL,
    memory_id  uuid NOT NULL,
    tf         smallint NOT NULL,
    dl         integer NOT NULL,
    PRIMARY KEY (project_id, scope_id, term, memory_id) INCLUDE (tf, dl)
);

CREATE TABLE entities (
    project_id bigint NOT NULL,
    id         bigint GENERATED ALWAYS AS IDENTITY,
    scope_id   bigint NOT NULL,
    name       text NOT NULL,
    norm       text COLLATE "C" NOT NULL,
    kind       text NOT NULL,
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, scope_id, norm),
    FOREIGN KEY (project_id, scope_id) REFERENCES scopes ON DELETE CASCADE
);

CREATE TABLE memory_entities (
    project_id bigint NOT NULL,
    entity_id  bigint NOT NULL,
    memory_id  uuid NOT NULL,
    PRIMARY KEY (project_id, entity_id, memory_id),
    FOREIGN KEY (project_id, entity_id) REFERENCES entities ON DELETE CASCADE,
    FOREIGN KEY (project_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_entities_memory ON memory_entities (project_id, memory_id);

CREATE TABLE memory_sources (
    project_id bigint NOT NULL,
    memory_id  uuid NOT NULL,
    message_id uuid NOT NULL,
    span_start integer NOT NULL,                        -- characters
    span_end   integer NOT NULL,                        -- exclusive
    PRIMARY KEY (project_id, memory_id, message_id, span_start),
    FOREIGN KEY (project_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    FOREIGN KEY (project_id, message_id) REFERENCES messages ON DELETE CASCADE
);
CREATE INDEX memory_sources_message ON memory_sources (project_id, message_id);

-- History: every change of a memory, kept after its deletion ---------------------------------------------------------

CREATE TABLE history (
    project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    id         uuid NOT NULL,                           -- version 7: order of ids is order of changes
    memory_id  uuid NOT NULL,
    scope_id   bigint NOT NULL,
    event      text NOT NULL CHECK (event IN ('ADD', 'UPDATE', 'DELETE')),
    old_text   text,
    new_text   text,
    user_id    text,
    agent_id   text,
    app_id     text,
    run_id     text,
    metadata   jsonb,
    categories text[],
    input      jsonb NOT NULL DEFAULT '[]',
    event_id   uuid,
    created_at timestamptz NOT NULL,                    -- of the memory
    updated_at timestamptz NOT NULL,                    -- of this change
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, scope_id) REFERENCES scopes ON DELETE CASCADE
);
CREATE INDEX history_memory ON history (project_id, memory_id, id);
