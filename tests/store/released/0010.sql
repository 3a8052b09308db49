-- statement: announcements._WANTED
SELECT DISTINCT unnest(event_types) AS event_type FROM webhooks WHERE project_id = $1 AND is_active

-- statement: announcements._INSERT
WITH n AS (
    SELECT $1::bigint AS project_id, r.*
    FROM jsonb_to_recordset($2::jsonb) AS r (
        position integer, event_type text, event_id uuid, memory_id uuid, user_id text, agent_id text, app_id text,
        run_id text, details jsonb)
)

INSERT INTO deliveries (project_id, endpoint_id, event_type, event_id, memory_id, user_id, agent_id, app_id, run_id, details)
SELECT w.project_id, w.id, n.event_type, n.event_id, n.memory_id, n.user_id, n.agent_id, n.app_id, n.run_id, n.details
FROM n
JOIN webhooks w ON w.project_id = n.project_id AND w.is_active AND n.event_type = ANY (w.event_types)
ORDER BY n.position, w.created_at, w.id
FOR KEY SHARE OF w

-- statement: announcements._INSERT_DELETED
WITH n AS (                                     -- history_deleted
    SELECT h.project_id, row_number() OVER (ORDER BY h.id) AS position, 'memory_delete' AS event_type, h.event_id,
           h.memory_id, h.user_id, h.agent_id, h.app_id, h.run_id,
           jsonb_build_object('id', h.memory_id, 'data', jsonb_build_object('memory', h.old_text), 'event', 'DELETE')
           AS details
    FROM history h
    WHERE h.project_id = $1 AND h.event_id = $2 AND h.event = 'DELETE'
      AND EXISTS (SELECT FROM webhooks w
                  WHERE w.project_id = $1 AND w.is_active AND 'memory_delete' = ANY (w.event_types))
)

INSERT INTO deliveries (project_id, endpoint_id, event_type, event_id, memory_id, user_id, agent_id, app_id, run_id, details)
SELECT w.project_id, w.id, n.event_type, n.event_id, n.memory_id, n.user_id, n.agent_id, n.app_id, n.run_id, n.details
FROM n
JOIN webhooks w ON w.project_id = n.project_id AND w.is_active AND n.event_type = ANY (w.event_types)
ORDER BY n.position, w.created_at, w.id
FOR KEY SHARE OF w

-- statement: announcements._INSERT_FAILED
WITH n AS (
    SELECT e.project_id, 0 AS position, 'ingest_job_failed' AS event_type, e.id AS event_id, NULL::uuid AS memory_id,
       s.user_id, s.agent_id, s.app_id, s.run_id,
       jsonb_build_object('event', 'INGEST_JOB_FAILED', 'event_id', e.id, 'status', e.status, 'results', e.results,
                          'error', e.error) AS details
    FROM events e
    LEFT JOIN scopes s ON s.project_id = e.project_id AND s.id = e.scope_id
    WHERE e.project_id = $1 AND e.id = $2 AND e.kind = 'ADD' AND e.status = 'FAILED'
)

INSERT INTO deliveries (project_id, endpoint_id, event_type, event_id, memory_id, user_id, agent_id, app_id, run_id, details)
SELECT w.project_id, w.id, n.event_type, n.event_id, n.memory_id, n.user_id, n.agent_id, n.app_id, n.run_id, n.details
FROM n
JOIN webhooks w ON w.project_id = n.project_id AND w.is_active AND n.event_type = ANY (w.event_types)
ORDER BY n.position, w.created_at, w.id
FOR KEY SHARE OF w

-- statement: claims._CLAIM
WITH RECURSIVE waiting (project_id) AS (        -- projects with pending events: one probe of events_due each
    (SELECT project_id FROM events WHERE status = 'PENDING' ORDER BY project_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.project_id FROM events e
            WHERE e.status = 'PENDING' AND e.project_id > w.project_id ORDER BY e.project_id LIMIT 1)
    FROM waiting w
    WHERE w.project_id IS NOT NULL
), candidates AS MATERIALIZED (
    SELECT c.project_id, c.id, running.count, c.next_at, c.seq
    FROM waiting w
    CROSS JOIN LATERAL (                        -- events_one_running; never more than all workers' slots
        SELECT count(*) AS count, coalesce(array_agg(r.scope_id) FILTER (WHERE r.scope_id IS NOT NULL), '{}') AS scopes
        FROM events r
        WHERE r.project_id = w.project_id AND r.status = 'RUNNING'
    ) running
    CROSS JOIN LATERAL (                        -- events_due in its order, until enough are found
        SELECT e.project_id, e.id, e.next_at, e.seq
        FROM events e
        WHERE e.project_id = w.project_id AND e.status = 'PENDING'
          AND e.next_at <= statement_timestamp()
          AND (e.scope_id IS NULL OR e.scope_id <> ALL (running.scopes))
          AND NOT EXISTS (                      -- events_open; one that has failed before may be overtaken
              SELECT FROM events o
              WHERE o.project_id = e.project_id AND o.scope_id = e.scope_id AND o.seq < e.seq
                AND o.status = 'PENDING' AND o.attempts = 0)
          AND (e.attempts < 2 OR e.error_code IS DISTINCT FROM 'worker_lost'
              OR NOT EXISTS (                   -- events_lease; of those that outlived two workers one at a time: it may be the killer
                  SELECT FROM events r
                  WHERE r.status = 'RUNNING' AND r.attempts > 2 AND r.error_code = 'worker_lost'))
        ORDER BY e.next_at, e.seq
        LIMIT 4                                 -- more than one, because another worker may hold the first
    ) c
    ORDER BY running.count, c.next_at, c.seq
    LIMIT 64
), chosen AS MATERIALIZED (
    SELECT e.project_id, e.id
    FROM candidates c
    JOIN events e ON e.project_id = c.project_id AND e.id = c.id
    WHERE e.status = 'PENDING'
    ORDER BY c.count, c.next_at, c.seq
    LIMIT 1
    FOR UPDATE OF e SKIP LOCKED
)
UPDATE events e
SET status = 'RUNNING', attempts = e.attempts + 1, lease_epoch = e.lease_epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $1),
    started_at = coalesce(e.started_at, clock_timestamp()), updated_at = clock_timestamp()
FROM chosen
WHERE e.project_id = chosen.project_id AND e.id = chosen.id
RETURNING e.project_id, e.id, e.kind, e.status, e.scope_id, e.target_scope_ids, e.payload, e.idempotency_print, e.attempts, e.lease_epoch, e.checkpoint, e.results, e.metadata, e.error_code, e.error, e.created_at, e.updated_at, e.started_at, e.completed_at

-- statement: claims._RENEW
UPDATE events SET lease_until = clock_timestamp() + make_interval(secs => $4)
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._SAVE_CHECKPOINT
UPDATE events SET checkpoint = $4, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._LOCK_FOR_FINISH
SELECT cancelled_scope_ids FROM events
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
FOR UPDATE

-- statement: claims._FINISH
UPDATE events
SET status = 'SUCCEEDED', results = $4, metadata = $5, error_code = NULL, error = NULL, lease_until = NULL,
    checkpoint = NULL, completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._DISCARD
DELETE FROM events WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._RETRY_AT
UPDATE events
SET status = 'PENDING', next_at = clock_timestamp() + make_interval(secs => $4), error_code = $5, error = $6,
    lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._FAIL
UPDATE events
SET status = 'FAILED', error_code = $4, error = $5, lease_until = NULL,
    completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._RELEASE
UPDATE events                                   -- next_at stays: it keeps its place in the queue
SET status = 'PENDING', attempts = attempts - 1, lease_until = NULL, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: claims._RECLAIM_EXPIRED
WITH expired AS (                               -- events_lease
    SELECT project_id, id FROM events
    WHERE status = 'RUNNING' AND lease_until < statement_timestamp()
    FOR UPDATE SKIP LOCKED
), changed AS (
UPDATE events e
SET status = CASE WHEN e.attempts > cardinality($1::float8[]) THEN 'FAILED' ELSE 'PENDING' END,
    -- At once after the first death; then by the schedule, so that an event that kills its worker does not take
    -- its neighbours' attempts with it.
    next_at = clock_timestamp() + make_interval(secs => CASE WHEN e.attempts < 2 THEN 0
        ELSE coalesce(($1::float8[])[e.attempts - 1], 0) END),
    error_code = 'worker_lost', error = 'The worker stopped before it was done.',
    completed_at = CASE WHEN e.attempts > cardinality($1::float8[]) THEN clock_timestamp() END,
    lease_until = NULL, updated_at = clock_timestamp()
FROM expired
WHERE e.project_id = expired.project_id AND e.id = expired.id
RETURNING e.project_id, e.id, e.kind, e.status, e.scope_id, e.results, e.error
), n AS (
    SELECT e.project_id, 0 AS position, 'ingest_job_failed' AS event_type, e.id AS event_id, NULL::uuid AS memory_id,
       s.user_id, s.agent_id, s.app_id, s.run_id,
       jsonb_build_object('event', 'INGEST_JOB_FAILED', 'event_id', e.id, 'status', e.status, 'results', e.results,
                          'error', e.error) AS details
    FROM changed e
    LEFT JOIN scopes s ON s.project_id = e.project_id AND s.id = e.scope_id
    WHERE e.kind = 'ADD' AND e.status = 'FAILED'
), announced AS (
INSERT INTO deliveries (project_id, endpoint_id, event_type, event_id, memory_id, user_id, agent_id, app_id, run_id, details)
SELECT w.project_id, w.id, n.event_type, n.event_id, n.memory_id, n.user_id, n.agent_id, n.app_id, n.run_id, n.details
FROM n
JOIN webhooks w ON w.project_id = n.project_id AND w.is_active AND n.event_type = ANY (w.event_types)
ORDER BY n.position, w.created_at, w.id
FOR KEY SHARE OF w
)
SELECT count(*) FROM changed

-- statement: db._VECTOR_VERSIONS
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS installed,
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector') AS available

-- statement: db._HALFVEC_SCHEMA
SELECT n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typname = 'halfvec'

-- statement: deliveries._CLAIM
WITH RECURSIVE waiting (project_id, endpoint_id) AS (   -- endpoints with pending deliveries: one probe of deliveries_due each
    (SELECT project_id, endpoint_id FROM deliveries WHERE status = 'PENDING' ORDER BY project_id, endpoint_id LIMIT 1)
    UNION ALL
    SELECT behind.project_id, behind.endpoint_id
    FROM waiting t
    CROSS JOIN LATERAL (
        SELECT d.project_id, d.endpoint_id FROM deliveries d
        WHERE d.status = 'PENDING' AND (d.project_id, d.endpoint_id) > (t.project_id, t.endpoint_id)
        ORDER BY d.project_id, d.endpoint_id LIMIT 1
    ) behind
), candidates AS MATERIALIZED (
    SELECT due.project_id, due.id, tenant.running AS of_project, busy.running, due.next_at, due.seq
    FROM waiting t
    JOIN webhooks w ON w.project_id = t.project_id AND w.id = t.endpoint_id AND w.is_active
    CROSS JOIN LATERAL (                        -- deliveries_running; never more than all workers' slots
        SELECT count(*) AS running FROM deliveries r
        WHERE r.project_id = t.project_id AND r.endpoint_id = t.endpoint_id AND r.status = 'RUNNING'
    ) busy
    CROSS JOIN LATERAL (
        SELECT count(*) AS running FROM deliveries r WHERE r.project_id = t.project_id AND r.status = 'RUNNING'
    ) tenant
    CROSS JOIN LATERAL (                        -- deliveries_due in its order
        SELECT d.project_id, d.id, d.next_at, d.seq FROM deliveries d
        WHERE d.project_id = t.project_id AND d.endpoint_id = t.endpoint_id AND d.status = 'PENDING'
          AND d.next_at <= statement_timestamp()
        ORDER BY d.next_at, d.seq
        LIMIT 4                                 -- more than one, because another worker may hold the first
    ) due
    WHERE busy.running < CASE WHEN w.failing_since IS NULL THEN $2::integer ELSE 1 END
    ORDER BY tenant.running, busy.running, due.next_at, due.seq
    LIMIT 64
), chosen AS MATERIALIZED (
    SELECT d.project_id, d.id
    FROM candidates c
    JOIN deliveries d ON d.project_id = c.project_id AND d.id = c.id
    WHERE d.status = 'PENDING'
    ORDER BY c.of_project, c.running, c.next_at, c.seq
    LIMIT 1
    FOR UPDATE OF d SKIP LOCKED
)
UPDATE deliveries d
SET status = 'RUNNING', attempts = d.attempts + 1, lease_epoch = d.lease_epoch + 1,
    lease_until = clock_timestamp() + make_interval(secs => $1)
FROM chosen, webhooks w, projects p
WHERE d.project_id = chosen.project_id AND d.id = chosen.id
  AND w.project_id = d.project_id AND w.id = d.endpoint_id AND p.id = d.project_id
RETURNING d.project_id, d.id, d.seq, d.endpoint_id, d.event_type, d.event_id, d.memory_id, d.user_id, d.agent_id,
       d.app_id, d.run_id, d.details, d.status, d.attempts, d.next_at, d.lease_epoch, d.created_at, d.completed_at, w.url, p.public_id, clock_timestamp() AS now, ARRAY[w.secret] || ARRAY(
    SELECT f ->> 'secret' FROM jsonb_array_elements(w.former_secrets) AS f
    WHERE (f ->> 'until')::timestamptz > clock_timestamp()) AS secrets

-- statement: deliveries._SETTLE
WITH held AS (
    UPDATE deliveries
    SET status = $4, lease_until = NULL,
        next_at = CASE WHEN $4 = 'PENDING' THEN clock_timestamp() + make_interval(secs => $5) ELSE next_at END,
        completed_at = CASE WHEN $4 <> 'PENDING' THEN clock_timestamp() END
    WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3
    RETURNING project_id, id
)
INSERT INTO delivery_attempts (project_id, delivery_id, started_at, status_code, latency_ms, error_code, error, response)
SELECT project_id, id, $6, $7, $8, $9, $10, $11 FROM held

-- statement: deliveries._RELEASE
UPDATE deliveries SET status = 'PENDING', attempts = attempts - 1, lease_until = NULL
WHERE project_id = $1 AND id = $2 AND status = 'RUNNING' AND lease_epoch = $3

-- statement: deliveries._RECLAIM_EXPIRED
WITH expired AS (                               -- deliveries_lease
    SELECT project_id, id, lease_until FROM deliveries
    WHERE status = 'RUNNING' AND lease_until < statement_timestamp()
    FOR UPDATE SKIP LOCKED
), changed AS (
    UPDATE deliveries d
    SET status = CASE WHEN d.attempts > cardinality($1::float8[]) THEN 'FAILED' ELSE 'PENDING' END,
        next_at = clock_timestamp() + make_interval(secs => coalesce(($1::float8[])[d.attempts], 0)),
        completed_at = CASE WHEN d.attempts > cardinality($1::float8[]) THEN clock_timestamp() END,
        lease_until = NULL
    FROM expired
    WHERE d.project_id = expired.project_id AND d.id = expired.id
    RETURNING d.project_id, d.id, expired.lease_until
)
INSERT INTO delivery_attempts (project_id, delivery_id, started_at, error_code, error)
SELECT project_id, id, lease_until, 'worker_lost', 'The worker stopped before it knew the answer.' FROM changed

-- statement: deliveries._PURGE
DELETE FROM deliveries d
USING (
    SELECT project_id, id FROM deliveries       -- deliveries_age
    WHERE created_at < statement_timestamp() - make_interval(days => $1) AND status <> 'RUNNING'
    ORDER BY created_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
) old
WHERE d.project_id = old.project_id AND d.id = old.id

-- statement: deliveries._COUNT
SELECT count(*) FROM deliveries
WHERE project_id = $1 AND endpoint_id = $2 AND ($3::text IS NULL OR status = $3)

-- statement: deliveries._LIST
SELECT d.project_id, d.id, d.seq, d.endpoint_id, d.event_type, d.event_id, d.memory_id, d.user_id, d.agent_id,
       d.app_id, d.run_id, d.details, d.status, d.attempts, d.next_at, d.lease_epoch, d.created_at, d.completed_at
FROM deliveries d                               -- deliveries_newest
WHERE project_id = $1 AND endpoint_id = $2 AND ($3::text IS NULL OR status = $3)
ORDER BY seq DESC
LIMIT $4 OFFSET $5

-- statement: deliveries._LOG
SELECT delivery_id, started_at, status_code, latency_ms, error_code, error, response
FROM delivery_attempts
WHERE project_id = $1 AND delivery_id = ANY ($2::uuid[])
ORDER BY delivery_id, seq DESC

-- statement: deliveries._REPLAY
UPDATE deliveries
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL
WHERE project_id = $1 AND endpoint_id = $2 AND id = $3 AND status <> 'RUNNING'
RETURNING id

-- statement: deliveries._EXISTS
SELECT EXISTS (SELECT FROM deliveries WHERE project_id = $1 AND endpoint_id = $2 AND id = $3)

-- statement: deliveries._REPLAY_FAILED
UPDATE deliveries
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL
WHERE project_id = $1 AND endpoint_id = $2 AND status = 'FAILED'

-- statement: entities._INSERT
INSERT INTO entities (project_id, scope_id, name, norm, kind)
SELECT $1, e.scope_id, e.name, e.norm, e.kind
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) AS e (scope_id, name, norm, kind)
WHERE NOT EXISTS (SELECT FROM entities k WHERE k.project_id = $1 AND k.scope_id = e.scope_id AND k.norm = e.norm)
ORDER BY e.scope_id, e.norm COLLATE "C"
ON CONFLICT (project_id, scope_id, norm) DO NOTHING

-- statement: entities._LINK
INSERT INTO memory_entities (project_id, entity_id, memory_id)
SELECT $1, e.id, l.memory_id
FROM unnest($2::bigint[], $3::text[], $4::uuid[]) AS l (scope_id, norm, memory_id)
JOIN entities e ON e.project_id = $1 AND e.scope_id = l.scope_id AND e.norm = l.norm    -- its unique key
ON CONFLICT DO NOTHING

-- statement: entities._LINKED
SELECT DISTINCT entity_id FROM memory_entities
WHERE project_id = $1 AND memory_id = ANY($2::uuid[])           -- index memory_entities_memory

-- statement: entities._UNLINK
DELETE FROM memory_entities WHERE project_id = $1 AND memory_id = ANY($2::uuid[])

-- statement: entities._DELETE_UNMENTIONED
DELETE FROM entities e
WHERE e.project_id = $1 AND e.id = ANY($2::bigint[])
  AND NOT EXISTS (SELECT FROM memory_entities l WHERE l.project_id = $1 AND l.entity_id = e.id)

-- statement: erase._EVENTS
DELETE FROM events WHERE project_id = $1

-- statement: erase._LINKS
DELETE FROM memory_entities WHERE project_id = $1

-- statement: erase._SOURCES
DELETE FROM memory_sources WHERE project_id = $1

-- statement: erase._VECTORS
DELETE FROM memory_vectors WHERE project_id = $1

-- statement: erase._ACCESS
DELETE FROM memory_access WHERE project_id = $1

-- statement: erase._FEEDBACK
DELETE FROM feedback WHERE project_id = $1

-- statement: erase._ENTITIES
DELETE FROM entities WHERE project_id = $1

-- statement: erase._MEMORIES
DELETE FROM memories WHERE project_id = $1

-- statement: erase._MESSAGES
DELETE FROM messages WHERE project_id = $1

-- statement: erase._HISTORY
DELETE FROM history WHERE project_id = $1

-- statement: erase._ENDPOINTS
SELECT id FROM webhooks WHERE project_id = $1 FOR UPDATE

-- statement: erase._ATTEMPTS
DELETE FROM delivery_attempts WHERE project_id = $1

-- statement: erase._DELIVERIES
DELETE FROM deliveries WHERE project_id = $1

-- statement: erase._PROJECT
DELETE FROM projects WHERE id = $1 RETURNING id

-- statement: erase._TERMS
DELETE FROM terms WHERE project_id = $1

-- statement: events._INSERT
INSERT INTO events (project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_key, idempotency_print,
                    results, metadata, started_at, completed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
        CASE WHEN $4 <> 'PENDING' THEN statement_timestamp() END,
        CASE WHEN $4 <> 'PENDING' THEN clock_timestamp() END)
ON CONFLICT (project_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
RETURNING project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint, results, metadata, error_code, error, created_at, updated_at, started_at, completed_at

-- statement: events._BY_KEY
SELECT project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint, results, metadata, error_code, error, created_at, updated_at, started_at, completed_at
FROM events
WHERE project_id = $1 AND idempotency_key = $2

-- statement: events._RECORD
UPDATE events SET results = $3, metadata = $4, completed_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'SUCCEEDED'

-- statement: events._CANCEL_TARGETS
WITH hit AS (                                   -- events_open; in one order, so that two deletes cannot deadlock
    SELECT project_id, id FROM events
    WHERE project_id = $1 AND status IN ('PENDING', 'RUNNING') AND target_scope_ids && $2::bigint[]
    ORDER BY seq
    FOR UPDATE
)
UPDATE events e
SET cancelled_scope_ids = e.cancelled_scope_ids || ARRAY(
        SELECT target FROM unnest(e.target_scope_ids) AS target
        WHERE target = ANY ($2::bigint[]) AND target <> ALL (e.cancelled_scope_ids)),
    updated_at = clock_timestamp()
FROM hit
WHERE e.project_id = hit.project_id AND e.id = hit.id

-- statement: events._GET
SELECT project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint, results, metadata, error_code, error, created_at, updated_at, started_at, completed_at FROM events WHERE project_id = $1 AND id = $2

-- statement: events._COUNT
SELECT count(*) FROM events
WHERE project_id = $1
  AND kind <> ALL ($6::text[])
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::text IS NULL OR status = $3)
  AND ($4::timestamptz IS NULL OR created_at >= $4)
  AND ($5::timestamptz IS NULL OR created_at < $5)

-- statement: events._LIST
SELECT project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint, results, metadata, error_code, error, created_at, updated_at, started_at, completed_at FROM events                   -- events_newest
WHERE project_id = $1
  AND kind <> ALL ($6::text[])
  AND ($2::text IS NULL OR kind = $2)
  AND ($3::text IS NULL OR status = $3)
  AND ($4::timestamptz IS NULL OR created_at >= $4)
  AND ($5::timestamptz IS NULL OR created_at < $5)
ORDER BY seq DESC
LIMIT $7 OFFSET $8

-- statement: events._REOPEN
UPDATE events
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL, error_code = NULL, error = NULL,
    updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND status = 'FAILED'
RETURNING project_id, id, kind, status, scope_id, target_scope_ids, payload, idempotency_print, attempts, lease_epoch, checkpoint, results, metadata, error_code, error, created_at, updated_at, started_at, completed_at

-- statement: events._REOPEN_FAILED
UPDATE events                                   -- a look through the project's events; an operator asks, rarely
SET status = 'PENDING', attempts = 0, next_at = clock_timestamp(), completed_at = NULL, error_code = NULL, error = NULL,
    updated_at = clock_timestamp()
WHERE project_id = $1 AND status = 'FAILED' AND kind <> ALL ($2::text[])

-- statement: events._COUNT_PENDING
SELECT count(*) FROM (                          -- events_due, at most so many entries of it
    SELECT FROM events WHERE project_id = $1 AND status = 'PENDING' AND kind <> ALL ($3::text[]) LIMIT $2
) waiting

-- statement: events._OLDEST_PENDING_AGE
WITH RECURSIVE waiting (project_id) AS (
    (SELECT project_id FROM events WHERE status = 'PENDING' ORDER BY project_id LIMIT 1)
    UNION ALL
    SELECT (SELECT e.project_id FROM events e
            WHERE e.status = 'PENDING' AND e.project_id > w.project_id ORDER BY e.project_id LIMIT 1)
    FROM waiting w
    WHERE w.project_id IS NOT NULL
)
SELECT extract(epoch FROM statement_timestamp() - min(head.next_at))::float8
FROM waiting w
CROSS JOIN LATERAL (
    SELECT e.next_at FROM events e
    WHERE e.project_id = w.project_id AND e.status = 'PENDING' AND e.next_at <= statement_timestamp()
    ORDER BY e.next_at LIMIT 1
) head

-- statement: exports._INSERT
INSERT INTO exports (project_id, id, schema, instructions, filters, null_scoping) VALUES ($1, $2, $3, $4, $5, $6)

-- statement: exports._FINISH
UPDATE exports SET result = $3, scope_ids = $4, updated_at = clock_timestamp() WHERE project_id = $1 AND id = $2

-- statement: exports._FIND
SELECT x.project_id, x.id, x.schema, x.instructions, x.filters, x.null_scoping, x.result, x.created_at, x.updated_at,
       e.status, e.error
FROM exports x LEFT JOIN events e ON e.project_id = x.project_id AND e.id = x.id
WHERE x.project_id = $1 AND x.id = $2 AND x.created_at > clock_timestamp() - make_interval(days => $3)

-- statement: exports._NEWEST
SELECT project_id, id, '{}'::json AS schema, instructions, filters, null_scoping, NULL::json AS result, created_at, updated_at
FROM exports
WHERE project_id = $1 AND created_at > clock_timestamp() - make_interval(days => $2)
ORDER BY created_at DESC                                        -- index exports_newest
LIMIT $3

-- statement: exports._DELETE_OF
DELETE FROM exports WHERE project_id = $1 AND scope_ids && $2::bigint[]

-- statement: exports._DELETE_OLD
DELETE FROM exports WHERE created_at <= clock_timestamp() - make_interval(days => $1)

-- statement: feedback._SET
INSERT INTO feedback AS f (project_id, memory_id, feedback, reason)
SELECT m.project_id, m.id, $3, $4
FROM (SELECT project_id, id FROM memories WHERE project_id = $1 AND id = $2 FOR KEY SHARE) m
ON CONFLICT (project_id, memory_id) DO UPDATE
SET feedback = excluded.feedback, reason = excluded.reason, updated_at = clock_timestamp()
RETURNING true

-- statement: feedback._CLEAR
WITH cleared AS (DELETE FROM feedback WHERE project_id = $1 AND memory_id = $2)
SELECT EXISTS (SELECT FROM memories WHERE project_id = $1 AND id = $2)

-- statement: feedback._GET
SELECT feedback, reason FROM feedback WHERE project_id = $1 AND memory_id = $2

-- statement: history._INSERT
INSERT INTO history (project_id, id, memory_id, scope_id, event, old_text, new_text, user_id, agent_id, app_id, run_id,
                     metadata, categories, input, event_id, created_at, updated_at)
SELECT $1, c.id, m.id, m.scope_id, c.event, c.old_text, m.text, m.user_id, m.agent_id, m.app_id, m.run_id,
       m.metadata, m.categories, c.input, c.event_id, m.created_at, m.updated_at
FROM jsonb_to_recordset($2::jsonb) AS c (id uuid, memory_id uuid, event text, old_text text, input jsonb, event_id uuid)
JOIN memories m ON m.project_id = $1 AND m.id = c.memory_id

-- statement: history._INSERT_DELETED
INSERT INTO history (project_id, id, memory_id, scope_id, event, old_text, user_id, agent_id, app_id, run_id,
                     metadata, categories, event_id, created_at, updated_at)
SELECT $1, d.id, m.id, m.scope_id, 'DELETE', m.text, m.user_id, m.agent_id, m.app_id, m.run_id,
       m.metadata, m.categories, $4, m.created_at, clock_timestamp()
FROM unnest($2::uuid[], $3::uuid[]) AS d (id, memory_id)
JOIN memories m ON m.project_id = $1 AND m.id = d.memory_id

-- statement: history._LIST
SELECT id, memory_id, event, old_text, new_text, user_id, agent_id, app_id, run_id, metadata, categories, input,
       created_at, updated_at
FROM history
WHERE project_id = $1 AND memory_id = $2
ORDER BY id                                                     -- index history_memory

-- statement: history._COUNT
SELECT count(*) FROM history WHERE project_id = $1

-- statement: history._NEWEST
SELECT id, memory_id, event, old_text, new_text, user_id, agent_id, app_id, run_id, metadata, categories, input,
       created_at, updated_at
FROM history
WHERE project_id = $1
ORDER BY id DESC                                                -- primary key
LIMIT $2 OFFSET $3

-- statement: history._ORIGINS
SELECT memory_id, (array_agg(input ORDER BY id))[1] AS input,
       bool_or(event = 'UPDATE') AS updated
FROM history
WHERE project_id = $1 AND memory_id = ANY($2::uuid[])          -- index history_memory
GROUP BY memory_id

-- statement: keys._INSERT
INSERT INTO api_keys (project_id, id, name, prefix, digest, role, scopes, expires_at, pins)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING project_id, id, name, prefix, created_at, last_used_at, revoked_at, role, scopes, expires_at, pins

-- statement: keys._FIND
SELECT project_id, id, name, prefix, created_at, last_used_at, revoked_at, role, scopes, expires_at, pins
FROM api_keys
WHERE digest = $1 AND revoked_at IS NULL                        -- index api_keys_digest; says which project asks
  AND (expires_at IS NULL OR expires_at > clock_timestamp())

-- statement: keys._LIST
SELECT project_id, id, name, prefix, created_at, last_used_at, revoked_at, role, scopes, expires_at, pins
FROM api_keys
WHERE project_id = $1
ORDER BY created_at, id

-- statement: keys._REVOKE
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE project_id = $1 AND id = $2
RETURNING id

-- statement: keys._GET
SELECT project_id, id, name, prefix, created_at, last_used_at, revoked_at, role, scopes, expires_at, pins FROM api_keys WHERE project_id = $1 AND id = $2 FOR UPDATE

-- statement: keys._UPDATE
UPDATE api_keys SET name = $3, role = $4, scopes = $5, expires_at = $6, pins = $7
WHERE project_id = $1 AND id = $2
RETURNING project_id, id, name, prefix, created_at, last_used_at, revoked_at, role, scopes, expires_at, pins

-- statement: keys._EXPIRE
UPDATE api_keys SET expires_at = least(expires_at, clock_timestamp() + make_interval(secs => $3))
WHERE project_id = $1 AND id = $2

-- statement: keys._TOUCH
UPDATE api_keys SET last_used_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
  AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')     -- a busy key is not a busy row

-- statement: lifecycle._UNCATEGORIZED
SELECT m.id FROM memories m WHERE m.project_id = $1 AND m.id = ANY($2::uuid[]) AND m.categories IS NULL

-- statement: lifecycle._CATEGORIZE
UPDATE memories m SET categories = ARRAY(SELECT jsonb_array_elements_text(c.categories))
FROM jsonb_to_recordset($2::jsonb) AS c (id uuid, hash text, categories jsonb)
WHERE m.project_id = $1 AND m.id = c.id AND m.hash = c.hash AND m.categories IS NULL
RETURNING m.id

-- statement: lifecycle._VECTORS
SELECT v.memory_id, v.embedding FROM memory_vectors v           -- index memory_vectors_memory
WHERE v.project_id = $1 AND v.memory_id = ANY($2::uuid[]) AND v.model = $3

-- statement: lifecycle._SUPERSEDE
WITH pairs AS (
    SELECT DISTINCT ON (old.id) old.id, new.id AS by            -- of several that replace it, the newest
    FROM unnest($2::uuid[], $3::uuid[]) AS p (one, other)
    JOIN memories a ON a.project_id = $1 AND a.id = p.one
    JOIN memories b ON b.project_id = $1 AND b.id = p.other AND b.scope_id = a.scope_id AND b.id <> a.id
    -- Whichever was said later stands, whichever was stored later.
    CROSS JOIN LATERAL (SELECT * FROM (VALUES (a.id, a.created_at), (b.id, b.created_at)) v (id, at)
                        ORDER BY at, id LIMIT 1) old
    CROSS JOIN LATERAL (SELECT * FROM (VALUES (a.id, a.created_at), (b.id, b.created_at)) v (id, at)
                        ORDER BY at DESC, id DESC LIMIT 1) new
    ORDER BY old.id, new.at DESC, new.id DESC
)
UPDATE memories m SET state = 'superseded', replaced_by = pairs.by
FROM pairs
WHERE m.project_id = $1 AND m.id = pairs.id AND m.state = 'active' AND NOT m.immutable
RETURNING m.id

-- statement: lifecycle._RESTATE
WITH pairs AS (
    SELECT DISTINCT a.id AS again, b.id AS other
    FROM unnest($2::uuid[], $3::uuid[]) AS p (one, other)
    JOIN memories a ON a.project_id = $1 AND a.id = p.one AND a.state = 'superseded'
    JOIN memories b ON b.project_id = $1 AND b.id = p.other AND b.scope_id = a.scope_id
                   AND b.state = 'active' AND NOT b.immutable AND b.created_at <= $4
)
UPDATE memories m
SET state = CASE WHEN m.id = pairs.again THEN 'active' ELSE 'superseded' END,
    replaced_by = CASE WHEN m.id = pairs.again THEN NULL ELSE pairs.again END
FROM pairs
WHERE m.project_id = $1 AND m.id IN (pairs.again, pairs.other)
RETURNING m.id, m.state

-- statement: lifecycle._ACTIVE
SELECT m.id, m.text FROM memories m
WHERE m.project_id = $1 AND m.scope_id = $2 AND m.state = 'active' AND length(m.text) <= $5
  AND m.id IN (SELECT t.memory_id FROM terms t                  -- primary key of terms, index-only
               WHERE t.project_id = $1 AND t.scope_id = $2 AND t.term = ANY($3::text[]))
ORDER BY m.created_at DESC, m.id DESC
LIMIT $4

-- statement: lifecycle._OF_HASHES
SELECT m.id, m.scope_id, m.hash
FROM unnest($2::bigint[], $3::text[]) AS wanted (scope_id, hash)
JOIN memories m ON m.project_id = $1 AND m.scope_id = wanted.scope_id AND m.hash = wanted.hash     -- its unique key

-- statement: lifecycle._STANDING
SELECT m.id, m.state, m.replaced_by, newer.created_at AS replaced_at, m.happened_from, m.updated_at, a.accessed_at
FROM memories m
LEFT JOIN memories newer ON newer.project_id = $1 AND newer.id = m.replaced_by
LEFT JOIN memory_access a ON a.project_id = $1 AND a.memory_id = m.id
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])

-- statement: lifecycle._ACCESSED
WITH found AS MATERIALIZED (
    SELECT m.id FROM memories m
    WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
    FOR KEY SHARE SKIP LOCKED                                   -- one that is just being deleted needs no history
)
INSERT INTO memory_access AS a (project_id, memory_id, accessed_at)
SELECT $1, f.id, ARRAY[$3::timestamptz] FROM found f
ORDER BY f.id                                                   -- one order for everybody: no deadlock
ON CONFLICT (project_id, memory_id) DO UPDATE SET accessed_at = (excluded.accessed_at || a.accessed_at)[1:$4::integer]

-- statement: members._LIST_OF_ORGANIZATIONS
SELECT organization_id AS of, email, role
FROM organization_members
WHERE organization_id = ANY($1::bigint[])
ORDER BY created_at, email_folded

-- statement: members._ADD_TO_ORGANIZATION
INSERT INTO organization_members (organization_id, email, role) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING true

-- statement: members._SET_IN_ORGANIZATION
UPDATE organization_members SET role = $3 WHERE organization_id = $1 AND email_folded = lower($2) RETURNING true

-- statement: members._REMOVE_FROM_ORGANIZATION
DELETE FROM organization_members WHERE organization_id = $1 AND email_folded = lower($2) RETURNING true

-- statement: members._LIST_OF_PROJECTS
SELECT project_id AS of, email, role
FROM project_members
WHERE project_id = ANY($1::bigint[])
ORDER BY created_at, email_folded

-- statement: members._ADD_TO_PROJECT
INSERT INTO project_members (project_id, email, role) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING true

-- statement: members._SET_IN_PROJECT
UPDATE project_members SET role = $3 WHERE project_id = $1 AND email_folded = lower($2) RETURNING true

-- statement: members._REMOVE_FROM_PROJECT
DELETE FROM project_members WHERE project_id = $1 AND email_folded = lower($2) RETURNING true

-- statement: memories._GET
SELECT m.project_id, m.id, m.scope_id, m.user_id, m.agent_id, m.app_id, m.run_id, m.text, m.hash, m.role, m.actor,
       m.metadata, m.categories, m.immutable, m.expiration_date, m.state, m.replaced_by, m.synthesized, m.event_id,
       m.position, m.happened_from, m.happened_to, m.created_at, m.updated_at
FROM memories m
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])

-- statement: memories._SUPERSEDED
WITH RECURSIVE chain (id) AS (
    SELECT $3::uuid
    UNION                                                       -- not ALL: a circle ends
    SELECT m.id FROM chain c JOIN memories m ON m.project_id = $1 AND m.scope_id = $2 AND m.replaced_by = c.id
)
SELECT id FROM chain WHERE id <> $3

-- statement: memories._KNOWN
SELECT m.scope_id, m.hash
FROM unnest($2::bigint[], $3::text[]) AS wanted (scope_id, hash)
JOIN memories m ON m.project_id = $1 AND m.scope_id = wanted.scope_id AND m.hash = wanted.hash     -- its unique key

-- statement: memories._TERM_COUNTS
SELECT id, term_count FROM memories WHERE project_id = $1 AND id = ANY($2::uuid[])

-- statement: memory_index._INSERT_VECTORS
INSERT INTO memory_vectors (project_id, scope_id, memory_id, model, embedding)
SELECT $1, v.scope_id, v.memory_id, $2, v.embedding
FROM unnest($3::bigint[], $4::uuid[], $5::halfvec[]) AS v (scope_id, memory_id, embedding)

-- statement: memory_index._DELETE_VECTORS
DELETE FROM memory_vectors WHERE project_id = $1 AND memory_id = ANY($2::uuid[])        -- index memory_vectors_memory

-- statement: memory_index._INSERT_TERMS
INSERT INTO terms (project_id, scope_id, term, memory_id, tf, dl)
SELECT $1, t.scope_id, t.term, t.memory_id, t.tf, t.dl
FROM unnest($2::bigint[], $3::text[], $4::uuid[], $5::smallint[], $6::integer[]) AS t (scope_id, term, memory_id, tf, dl)

-- statement: memory_index._DELETE_TERMS
WITH doomed AS MATERIALIZED (       -- before the join: else the planner may read all terms of the scope for each memory
    SELECT m.scope_id, m.id, lexeme
    FROM memories m, unnest(m.lexemes) AS lexeme
    WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])
)
DELETE FROM terms t USING doomed d                              -- the whole primary key of terms
WHERE t.project_id = $1 AND t.scope_id = d.scope_id AND t.term = d.lexeme COLLATE "C" AND t.memory_id = d.id

-- statement: memory_index._INSERT_SOURCES
INSERT INTO memory_sources (project_id, memory_id, message_id, span_start, span_end)
SELECT $1, s.memory_id, s.message_id, s.span_start, s.span_end
FROM unnest($2::uuid[], $3::uuid[], $4::integer[], $5::integer[]) AS s (memory_id, message_id, span_start, span_end)
ON CONFLICT DO NOTHING

-- statement: memory_rows._INSERT
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS at)     -- one instant for all of them
INSERT INTO memories AS m (
    project_id, id, scope_id, user_id, agent_id, app_id, run_id, text, hash, role, actor, metadata, categories, immutable,
    expiration_date, event_id, position, happened_from, happened_to, lexemes, term_count, created_at, updated_at, state,
    replaced_by, synthesized)
SELECT $1, r.id, r.scope_id, r.user_id, r.agent_id, r.app_id, r.run_id, r.text, r.hash, r.role, r.actor, r.metadata,
       r.categories, r.immutable, r.expiration_date, r.event_id, r.position, r.happened_from, r.happened_to, r.lexemes,
       r.term_count, coalesce(r.created_at, clock.at), coalesce(r.updated_at, clock.at), r.state, r.replaced_by,
       r.synthesized
FROM clock, jsonb_to_recordset($2::jsonb) AS r (
    n integer, id uuid, scope_id bigint, user_id text, agent_id text, app_id text, run_id text, text text, hash text,
    role text, actor text, metadata jsonb, categories text[], immutable boolean, expiration_date date, event_id uuid,
    position integer, happened_from timestamptz, happened_to timestamptz, lexemes text[], term_count integer,
    created_at timestamptz, updated_at timestamptz, state text, replaced_by uuid, synthesized boolean)
ORDER BY r.scope_id, r.hash, r.n                                -- one order for everybody: no deadlock on the unique key
ON CONFLICT DO NOTHING                                          -- the scope has the text, or the project has the id
RETURNING m.project_id, m.id, m.scope_id, m.user_id, m.agent_id, m.app_id, m.run_id, m.text, m.hash, m.role, m.actor,
       m.metadata, m.categories, m.immutable, m.expiration_date, m.state, m.replaced_by, m.synthesized, m.event_id,
       m.position, m.happened_from, m.happened_to, m.created_at, m.updated_at

-- statement: memory_rows._WRITE
UPDATE memories m
SET text = $3, hash = $4, metadata = CASE WHEN $5 THEN $6 ELSE m.metadata END, categories = $7, expiration_date = $8,
    created_at = $9, lexemes = coalesce($10, m.lexemes), term_count = coalesce($11, m.term_count),
    updated_at = clock_timestamp()
WHERE m.project_id = $1 AND m.id = $2
RETURNING m.project_id, m.id, m.scope_id, m.user_id, m.agent_id, m.app_id, m.run_id, m.text, m.hash, m.role, m.actor,
       m.metadata, m.categories, m.immutable, m.expiration_date, m.state, m.replaced_by, m.synthesized, m.event_id,
       m.position, m.happened_from, m.happened_to, m.created_at, m.updated_at

-- statement: memory_rows._SCOPES_OF
SELECT DISTINCT scope_id FROM memories WHERE project_id = $1 AND id = ANY($2::uuid[])

-- statement: memory_rows._DELETE
DELETE FROM memories WHERE project_id = $1 AND id = ANY($2::uuid[])     -- takes vectors, links and sources along
RETURNING id, scope_id, term_count

-- statement: messages._INSERT
INSERT INTO messages (project_id, id, scope_id, event_id, position, role, name, content, said_at)
SELECT $1, m.id, $2, $3, m.position, m.role, m.name, m.content, coalesce(m.said_at, clock_timestamp())
FROM unnest($4::uuid[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::timestamptz[])
     AS m (id, position, role, name, content, said_at)
ON CONFLICT DO NOTHING
RETURNING id, said_at

-- statement: messages._NEWEST
SELECT id, position, role, name, content, said_at
FROM messages
WHERE project_id = $1 AND scope_id = $2
ORDER BY id DESC                                                -- index messages_newest
LIMIT $3

-- statement: messages._DELETE
DELETE FROM messages WHERE project_id = $1 AND scope_id = ANY($2::bigint[])     -- index messages_newest

-- statement: migrate._LOCK
SELECT pg_advisory_lock($1)

-- statement: migrate._APPLIED
SELECT name, checksum FROM schema_migrations ORDER BY name

-- statement: migrate._RECORD
INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)

-- statement: models._REGISTER
INSERT INTO embedding_models (model, dims) VALUES ($1, $2) ON CONFLICT (model) DO NOTHING

-- statement: models._STORED
SELECT model, dims FROM embedding_models ORDER BY model

-- statement: models._IN_USE
SELECT model FROM embedding_models e
WHERE EXISTS (SELECT FROM memory_vectors v WHERE v.model = e.model)     -- one look per model: stops at the first vector

-- statement: orgs._LOCK_DIRECTORY
SELECT pg_advisory_xact_lock(hashtextextended('memoryd.directory', 0))

-- statement: orgs._INSERT_ORGANIZATION
INSERT INTO organizations (public_id, name, creator_id) VALUES ($1, $2, $3)
RETURNING id, public_id, name, created_at, updated_at, creator_id

-- statement: orgs._GET_ORGANIZATION
SELECT id, public_id, name, created_at, updated_at, creator_id FROM organizations WHERE public_id = $1

-- statement: orgs._LIST_ORGANIZATIONS
SELECT id, public_id, name, created_at, updated_at, creator_id
FROM organizations
WHERE $1::bigint IS NULL OR id = $1 OR creator_id = $1          -- primary key, index organizations_creator
ORDER BY id

-- statement: orgs._RENAME_ORGANIZATION
UPDATE organizations SET name = $2, updated_at = clock_timestamp() WHERE id = $1
RETURNING id, public_id, name, created_at, updated_at, creator_id

-- statement: orgs._DELETE_ORGANIZATION
DELETE FROM organizations WHERE id = $1

-- statement: orgs._OLDEST_ORGANIZATION
SELECT min(id) FROM organizations

-- statement: orgs._INSERT_PROJECT
WITH inserted AS (
    INSERT INTO projects (public_id, organization_id, name, description, settings) VALUES ($1, $2, $3, $4, $5)
    RETURNING *
)
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM inserted p JOIN organizations o ON o.id = p.organization_id

-- statement: orgs._GET_PROJECT
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE p.id = $1

-- statement: orgs._FIND_PROJECT
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE p.public_id = $1

-- statement: orgs._LIST_PROJECTS
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE $1::bigint IS NULL OR p.organization_id = $1              -- index projects_organization
ORDER BY p.id

-- statement: orgs._LOCK_PROJECT
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM projects p JOIN organizations o ON o.id = p.organization_id
WHERE p.id = $1
FOR NO KEY UPDATE OF p                                          -- adds, which refer to the row, go on meanwhile

-- statement: orgs._SAVE_PROJECT
WITH saved AS (
    UPDATE projects SET name = $2, description = $3, settings = $4, updated_at = clock_timestamp() WHERE id = $1
    RETURNING *
)
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM saved p JOIN organizations o ON o.id = p.organization_id

-- statement: orgs._SAVE_SETTINGS
WITH saved AS (
    UPDATE projects SET settings = $2, updated_at = clock_timestamp() WHERE id = $1 RETURNING *
)
SELECT p.id, p.public_id, p.organization_id, o.public_id AS organization_public_id, p.name, p.description, p.settings,
       p.created_at, p.updated_at
FROM saved p JOIN organizations o ON o.id = p.organization_id

-- statement: owners._COUNTS
SELECT kind, count(*) AS count FROM owners WHERE project_id = $1 GROUP BY kind

-- statement: owners._LIST
SELECT o.project_id, o.id, o.kind, o.name, o.title, o.metadata, o.created_at, o.updated_at, coalesce(CASE o.kind
    WHEN 'user' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.user_id = o.name)
    WHEN 'agent' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.agent_id = o.name)
    WHEN 'app' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.app_id = o.name)
    ELSE (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.run_id = o.name)
END, 0)::bigint AS memory_count
FROM (                                                          -- the page first, so that only its owners are counted
    SELECT * FROM owners WHERE project_id = $1
    ORDER BY id DESC                                            -- primary key
    LIMIT $2 OFFSET $3
) o
ORDER BY o.id DESC

-- statement: owners._FIND
SELECT o.project_id, o.id, o.kind, o.name, o.title, o.metadata, o.created_at, o.updated_at, coalesce(CASE o.kind
    WHEN 'user' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.user_id = o.name)
    WHEN 'agent' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.agent_id = o.name)
    WHEN 'app' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.app_id = o.name)
    ELSE (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.run_id = o.name)
END, 0)::bigint AS memory_count FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.name = $3

-- statement: owners._FIND_BY_ID
SELECT o.project_id, o.id, o.kind, o.name, o.title, o.metadata, o.created_at, o.updated_at, coalesce(CASE o.kind
    WHEN 'user' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.user_id = o.name)
    WHEN 'agent' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.agent_id = o.name)
    WHEN 'app' THEN (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.app_id = o.name)
    ELSE (SELECT sum(s.memory_count) FROM scopes s WHERE s.project_id = o.project_id AND s.run_id = o.name)
END, 0)::bigint AS memory_count FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.id = $3

-- statement: owners._NAMES
SELECT name FROM owners WHERE project_id = $1 AND kind = $2
ORDER BY name                                                   -- unique key
LIMIT $3

-- statement: owners._PUT
INSERT INTO owners AS o (project_id, kind, name, title, metadata) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (project_id, kind, name) DO UPDATE
SET title = coalesce(excluded.title, o.title), metadata = coalesce(excluded.metadata, o.metadata),
    updated_at = clock_timestamp()
RETURNING o.project_id, o.id, o.kind, o.name, o.title, o.metadata, o.created_at, o.updated_at, 0::bigint AS memory_count

-- statement: owners._RESTORE
INSERT INTO owners (project_id, kind, name)
SELECT DISTINCT s.project_id, n.kind, n.name
FROM scopes s
CROSS JOIN LATERAL (
    VALUES ('user', s.user_id), ('agent', s.agent_id), ('app', s.app_id), ('run', s.run_id)
) AS n (kind, name)
WHERE s.project_id = $1 AND s.id = ANY($2::bigint[]) AND n.name IS NOT NULL
  AND NOT EXISTS (SELECT FROM owners o WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name)
ORDER BY n.kind, n.name                                         -- one order for everybody: no deadlock
ON CONFLICT DO NOTHING

-- statement: owners._DELETE
DELETE FROM owners WHERE project_id = $1 AND kind = $2 AND name = $3 RETURNING id

-- statement: profiles._SETTINGS
SELECT enabled, entities FROM profile_settings WHERE project_id = $1

-- statement: profiles._LOCK_SETTINGS
INSERT INTO profile_settings (project_id) VALUES ($1)
ON CONFLICT (project_id) DO UPDATE SET project_id = excluded.project_id        -- takes the row's lock
RETURNING enabled, entities

-- statement: profiles._PUT_SETTINGS
UPDATE profile_settings SET enabled = $2, entities = $3, updated_at = clock_timestamp() WHERE project_id = $1

-- statement: profiles._FIND
SELECT p.project_id, p.kind, p.name, p.profile, p.generation_count, p.updated_at,
       CASE WHEN p.status = 'pending' AND (e.id IS NULL OR e.status IN ('FAILED', 'SUCCEEDED')) THEN 'failed'
            ELSE p.status END AS status,
       CASE WHEN p.status = 'pending' THEN e.error ELSE p.error END AS error
FROM profiles p LEFT JOIN events e ON e.project_id = p.project_id AND e.id = p.event_id
WHERE p.project_id = $1 AND p.kind = $2 AND p.name = $3

-- statement: profiles._EXPECT
INSERT INTO profiles AS p (project_id, kind, name, event_id, status)
SELECT o.project_id, o.kind, o.name, $4, 'pending'
FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.name = ANY($3::text[])
ORDER BY o.name
FOR KEY SHARE
ON CONFLICT (project_id, kind, name) DO UPDATE
SET status = 'pending', event_id = excluded.event_id, error = NULL, updated_at = clock_timestamp()
WHERE p.status <> 'succeeded'                   -- the former profile is shown until there is a new one

-- statement: profiles._PUT
INSERT INTO profiles AS p (project_id, kind, name, event_id, status, profile, error, generation_count)
SELECT o.project_id, o.kind, o.name, $4, $5, $6, $7, 1
FROM owners o WHERE o.project_id = $1 AND o.kind = $2 AND o.name = $3
FOR KEY SHARE
ON CONFLICT (project_id, kind, name) DO UPDATE
SET event_id = excluded.event_id, status = excluded.status, profile = excluded.profile, error = excluded.error,
    generation_count = p.generation_count + 1, updated_at = clock_timestamp()
RETURNING true

-- statement: profiles._SAMPLE
SELECT o.name
FROM owners o LEFT JOIN profiles p ON p.project_id = o.project_id AND p.kind = o.kind AND p.name = o.name
WHERE o.project_id = $1 AND o.kind = $2
  AND CASE o.kind                               -- indexes scopes_user, scopes_agent
      WHEN 'user' THEN EXISTS (
          SELECT FROM scopes s WHERE s.project_id = $1 AND s.user_id = o.name AND s.memory_count > 0)
      ELSE EXISTS (
          SELECT FROM scopes s WHERE s.project_id = $1 AND s.agent_id = o.name AND s.memory_count > 0) END
ORDER BY p.updated_at NULLS FIRST, o.id                         -- those without a profile, then the oldest profiles
LIMIT $3

-- statement: scopes._ENSURE
WITH named AS (
    SELECT kind, name FROM unnest($7::text[], $8::text[]) AS n (kind, name)
    WHERE NOT EXISTS (SELECT FROM owners o WHERE o.project_id = $1 AND o.kind = n.kind AND o.name = n.name)
), new_owners AS (
    INSERT INTO owners (project_id, kind, name) SELECT $1, kind, name FROM named ORDER BY kind, name
    ON CONFLICT DO NOTHING
), found AS (                                                   -- the unique key (project_id, owners_hash)
    SELECT id FROM scopes
    WHERE project_id = $1 AND owners_hash = $6
      AND user_id IS NOT DISTINCT FROM $2 AND agent_id IS NOT DISTINCT FROM $3
      AND app_id IS NOT DISTINCT FROM $4 AND run_id IS NOT DISTINCT FROM $5
), made AS (
    INSERT INTO scopes (project_id, user_id, agent_id, app_id, run_id)
    SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT FROM found)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT id FROM found UNION ALL SELECT id FROM made

-- statement: scopes._GET
SELECT project_id, id, user_id, agent_id, app_id, run_id FROM scopes WHERE project_id = $1 AND id = $2

-- statement: scopes._LOCK
SELECT id FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])
ORDER BY id                         -- one order for everybody: no deadlock
FOR NO KEY UPDATE                   -- an add that is being accepted refers to the scope and must not wait

-- statement: scopes._COUNT
UPDATE scopes s SET memory_count = s.memory_count + d.memories, term_total = s.term_total + d.terms
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS d (scope_id, memories, terms)
WHERE s.project_id = $1 AND s.id = d.scope_id

-- statement: scopes._TOTAL
SELECT coalesce(sum(memory_count), 0)::bigint FROM scopes WHERE project_id = $1

-- statement: search._FREQUENCIES
SELECT s.n::bigint AS n, f.term, f.df
FROM (SELECT coalesce(sum(memory_count), 0) AS n FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])) s
LEFT JOIN (
    SELECT term, count(*) AS df FROM terms                      -- primary key of terms, index-only
    WHERE project_id = $1 AND scope_id = ANY($2::bigint[]) AND term = ANY($3::text[])
    GROUP BY term
) f ON true

-- statement: search._SEMANTIC
WITH near AS (                                                  -- exact: every vector of the scopes is compared
    SELECT v.memory_id, v.embedding <=> $4::halfvec AS distance -- primary key of memory_vectors up to the model
    FROM memory_vectors v
    WHERE v.project_id = $1 AND v.scope_id = ANY($2::bigint[]) AND v.model = $3
    ORDER BY distance, v.memory_id
    LIMIT $5                                                    -- NULL: all
)
SELECT n.memory_id, 1 - n.distance AS score, (SELECT count(*) FROM near) AS looked_at
FROM near n JOIN memories m ON m.project_id = $1 AND m.id = n.memory_id
WHERE TRUE /* filter */
ORDER BY n.distance, n.memory_id
LIMIT $6

-- statement: search._LEXICAL
WITH postings AS (                                              -- primary key of terms, index-only
    SELECT t.memory_id, t.tf, t.dl, count(*) OVER (PARTITION BY t.term) AS df
    FROM terms t
    WHERE t.project_id = $1 AND t.scope_id = ANY($2::bigint[]) AND t.term = ANY($3::text[])
), corpus AS (
    SELECT sum(memory_count)::float8 AS n, sum(term_total)::float8 / nullif(sum(memory_count), 0)::float8 AS avgdl
    FROM scopes WHERE project_id = $1 AND id = ANY($2::bigint[])
), scored AS MATERIALIZED (
    SELECT p.memory_id, sum(ln(1 + (c.n - p.df + 0.5) / (p.df + 0.5))
                            * p.tf * 2.2 / (p.tf + 1.2 * (0.25 + 0.75 * p.dl / c.avgdl))) AS score -- k1 1.2, b 0.75
    FROM postings p CROSS JOIN corpus c
    GROUP BY p.memory_id
), best AS (
    SELECT memory_id, score FROM scored ORDER BY score DESC, memory_id LIMIT $4      -- NULL: all
), wanted AS (
    SELECT memory_id, score, true AS best FROM best
    UNION ALL
    SELECT memory_id, score, false FROM scored
    WHERE memory_id = ANY($6::uuid[]) AND memory_id NOT IN (SELECT memory_id FROM best)
), fitting AS (
    SELECT w.memory_id, w.score, row_number() OVER (ORDER BY w.best DESC, w.score DESC, w.memory_id) AS place
    FROM wanted w JOIN memories m ON m.project_id = $1 AND m.id = w.memory_id
    WHERE TRUE /* filter */
)
SELECT memory_id, score, (SELECT count(*) FROM best) AS looked_at
FROM fitting
WHERE place <= $5 OR memory_id = ANY($6::uuid[])
ORDER BY score DESC, memory_id

-- statement: search._BY_ENTITY
WITH named AS (                                                 -- unique key of entities
    SELECT id, norm FROM entities
    WHERE project_id = $1 AND scope_id = ANY($2::bigint[]) AND norm = ANY($3::text[])
), linked AS (                                                  -- primary key of memory_entities
    SELECT l.memory_id, n.norm, count(*) OVER (PARTITION BY n.norm) AS links
    FROM named n JOIN memory_entities l ON l.project_id = $1 AND l.entity_id = n.id
)
SELECT l.memory_id, count(DISTINCT l.norm)::float8 / cardinality($3::text[]) AS score, min(l.links) AS rarest
FROM linked l JOIN memories m ON m.project_id = $1 AND m.id = l.memory_id
WHERE TRUE /* filter */
GROUP BY l.memory_id
ORDER BY score DESC, rarest, l.memory_id
LIMIT $4

-- statement: search._FOUND
SELECT m.id, m.scope_id, left(m.text, $5) AS text, m.role, m.actor, m.created_at, m.happened_from, m.happened_to,
       1 - (v.embedding <=> $4::halfvec) AS cosine, before.id AS follows
FROM memories m
LEFT JOIN memory_vectors v                                      -- its primary key
       ON v.project_id = $1 AND v.scope_id = m.scope_id AND v.model = $3 AND v.memory_id = m.id
LEFT JOIN LATERAL (                                             -- index memories_newest
    SELECT b.id FROM memories b
    WHERE b.project_id = $1 AND b.scope_id = m.scope_id AND (b.created_at, b.id) < (m.created_at, m.id)
    ORDER BY b.created_at DESC, b.id DESC LIMIT 1
) before ON true
WHERE m.project_id = $1 AND m.id = ANY($2::uuid[])

-- statement: stats._STATS
WITH counted AS (                                               -- primary key of scopes
    SELECT sum(memory_count) AS memories,
           sum(memory_count) FILTER (WHERE user_id IS NOT NULL) AS of_users,
           sum(memory_count) FILTER (WHERE agent_id IS NOT NULL) AS of_agents,
           sum(memory_count) FILTER (WHERE run_id IS NOT NULL) AS of_runs,
           count(DISTINCT user_id) FILTER (WHERE memory_count > 0) AS users,
           count(DISTINCT agent_id) FILTER (WHERE memory_count > 0) AS agents,
           count(DISTINCT run_id) FILTER (WHERE memory_count > 0) AS runs
    FROM scopes
    WHERE project_id = $1
)
SELECT coalesce(memories, 0)::bigint AS memories, coalesce(of_users, 0)::bigint AS of_users,
       coalesce(of_agents, 0)::bigint AS of_agents, coalesce(of_runs, 0)::bigint AS of_runs, users, agents, runs,
       (SELECT count(*) FROM events WHERE project_id = $1 AND kind = 'ADD') AS adds,
       (SELECT coalesce(sum(count), 0)::bigint FROM retrievals WHERE project_id = $1) AS retrievals
FROM counted

-- statement: stats._ADD_RETRIEVALS
INSERT INTO retrievals AS r (project_id, kind, count)
SELECT $1, c.kind, c.count FROM unnest($2::text[], $3::bigint[]) AS c (kind, count)
ORDER BY c.kind                                                 -- one order for everybody: no deadlock
ON CONFLICT (project_id, kind) DO UPDATE SET count = r.count + excluded.count

-- statement: walls._RAISE
SELECT memoryd_raise_walls()

-- statement: walls._STANDING
WITH tenants AS (
    SELECT c.relname AS name, c.relrowsecurity AND c.relforcerowsecurity AS guarded
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'project_id' AND NOT a.attisdropped
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = current_schema()::regnamespace
      AND c.relowner = (SELECT o.relowner FROM pg_class o WHERE o.oid = to_regclass('schema_migrations'))
)
SELECT session_user::text AS user, to_regproc('memoryd_raise_walls') IS NOT NULL AS migrated,
       coalesce((SELECT bool_or(guarded) FROM tenants), false) AS raised,
       ARRAY(SELECT name::text FROM tenants WHERE NOT guarded ORDER BY name) AS open_tables,
       coalesce(pg_has_role(session_user, to_regrole($1)::oid, 'SET')
                AND pg_has_role(session_user, to_regrole($2)::oid, 'SET'), false) AS usable

-- statement: walls._ACT
SELECT set_config('role', $1, $3), set_config('memoryd.project', $2, $3)

-- statement: webhooks._INSERT
INSERT INTO webhooks (project_id, id, name, url, event_types, is_active, owner, secret)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at

-- statement: webhooks._LIST
SELECT project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at
FROM webhooks
WHERE project_id = $1
ORDER BY created_at, id

-- statement: webhooks._UPDATE
UPDATE webhooks SET
    name = coalesce($3, name),
    url = coalesce($4, url),
    event_types = coalesce($5, event_types),
    is_active = coalesce($6, is_active),
    disabled_reason = CASE WHEN $6 IS NULL THEN disabled_reason END,
    failing_since = CASE WHEN $4 IS NULL AND $6 IS NOT TRUE THEN failing_since END,     -- it gets a new start
    updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
RETURNING project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at

-- statement: webhooks._GET
SELECT project_id, id, name, url, event_types, is_active, disabled_reason, owner, created_at, updated_at
FROM webhooks
WHERE project_id = $1 AND id = $2

-- statement: webhooks._DELETE
DELETE FROM webhooks WHERE project_id = $1 AND id = $2 RETURNING id

-- statement: webhooks._SECRET
SELECT secret FROM webhooks WHERE project_id = $1 AND id = $2

-- statement: webhooks._ROTATE
UPDATE webhooks w
SET secret = $3, updated_at = clock_timestamp(), former_secrets = (
    SELECT coalesce(jsonb_agg(former ORDER BY (former ->> 'until')::timestamptz DESC), '[]')
    FROM (
        SELECT former
        FROM jsonb_array_elements(w.former_secrets || jsonb_build_object(
            'secret', w.secret, 'until', clock_timestamp() + make_interval(secs => $4))) AS former
        WHERE (former ->> 'until')::timestamptz > clock_timestamp()
        ORDER BY (former ->> 'until')::timestamptz DESC
        LIMIT 5
    ) AS kept)
WHERE project_id = $1 AND id = $2
RETURNING clock_timestamp() + make_interval(secs => $4) AS until

-- statement: webhooks._SUCCEEDED
UPDATE webhooks SET failing_since = NULL, failed_at = NULL
WHERE project_id = $1 AND id = $2 AND failing_since IS NOT NULL

-- statement: webhooks._FAILED
UPDATE webhooks
SET failing_since = CASE WHEN failed_at > clock_timestamp() - make_interval(secs => $3) THEN failing_since
                    ELSE clock_timestamp() END,
    failed_at = clock_timestamp()
WHERE project_id = $1 AND id = $2
RETURNING is_active, extract(epoch FROM clock_timestamp() - coalesce(failing_since, clock_timestamp()))::float8

-- statement: webhooks._DISABLE
UPDATE webhooks SET is_active = false, disabled_reason = $3, updated_at = clock_timestamp()
WHERE project_id = $1 AND id = $2 AND is_active

-- statement: workers._BEAT
INSERT INTO workers (id, slots, running) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET slots = excluded.slots, running = excluded.running, seen_at = clock_timestamp()

-- statement: workers._FORGET
DELETE FROM workers WHERE id = $1 OR seen_at < clock_timestamp() - make_interval(secs => $2)

-- statement: workers._ALIVE
SELECT id, slots, running, started_at, seen_at FROM workers
WHERE seen_at >= clock_timestamp() - make_interval(secs => $1)
ORDER BY started_at, id
