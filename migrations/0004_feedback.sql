-- Feedback on memories, what an owner is called, and how often memories were read.
-- Two new tables, and a column without a default: ALTER TABLE locks owners for an instant and rewrites nothing. The
-- previous release does not notice.

CREATE TABLE feedback (                                 -- one for a memory: the newest
    project_id bigint NOT NULL,
    memory_id  uuid NOT NULL,
    feedback   text CHECK (feedback IN ('POSITIVE', 'NEGATIVE', 'VERY_NEGATIVE')),
    reason     text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, memory_id),
    FOREIGN KEY (project_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    CHECK (num_nonnulls(feedback, reason) > 0)
);

ALTER TABLE owners ADD COLUMN title text;               -- for people; `name` is the id that requests use

CREATE TABLE retrievals (                               -- counted in memory and added up here every few seconds
    project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('SEARCH', 'GET_ALL', 'GET')),
    count      bigint NOT NULL CHECK (count >= 0),
    PRIMARY KEY (project_id, kind)
) WITH (fillfactor = 50);
