-- When memories were found by searches, for projects whose memories fade. One new table: no lock on anything that is in
-- use, and the previous release does not notice it. It fills only while a project's `decay` is on.

CREATE TABLE memory_access (
    project_id  bigint NOT NULL,
    memory_id   uuid NOT NULL,
    accessed_at timestamptz[] NOT NULL CHECK (cardinality(accessed_at) BETWEEN 1 AND 20),   -- newest first
    PRIMARY KEY (project_id, memory_id),
    FOREIGN KEY (project_id, memory_id) REFERENCES memories ON DELETE CASCADE
) WITH (fillfactor = 70);                               -- rewritten at every access: room for that in the same page
