-- What workers count, added up over all of them and over their lives: claims, ends, leases that were lost.
-- New table: no lock on anything that is in use, and the previous release does not notice it. Nothing of a project is in it.

CREATE TABLE counters (
    name  text COLLATE "C" PRIMARY KEY,                 -- with its labels, as metrics show them
    value bigint NOT NULL
);
