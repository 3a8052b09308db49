-- The audit log: who did what that administers or destroys.
-- One new table and two functions; nothing that exists is locked, and the previous release does not notice.
--
-- A line says that something was done, never what was in it: no text, no secret, and people as digests. So it stays when an
-- owner or a project is erased. The service can add lines and read them, and that is all: its roles may neither change nor
-- delete one. What is older than the setting allows, memoryd_purge_audit deletes, with the rights of the tables' owner.

CREATE TABLE audit_log (
    project_id    bigint NOT NULL DEFAULT 0,            -- that was acted upon; 0: none, or an organization. No foreign key:
                                                        -- the line about the end of a project outlives it
    id            bigint GENERATED ALWAYS AS IDENTITY,  -- grows with time
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    by_project_id bigint,                               -- of the key that acted; NULL: somebody at a shell
    actor         text NOT NULL,                        -- id of the key, or `cli`
    action        text NOT NULL CHECK (action ~ '^[a-z_]+\.[a-z_]+$'),
    organization  text,                                 -- public ids: the rows may be gone
    project       text,
    objects       text[] NOT NULL,                      -- ids of what it was done to; people as digests
    outcome       text NOT NULL CHECK (outcome IN ('ok', 'refused')),
    address       text,                                 -- where the request came from
    request_id    text,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX audit_log_newest ON audit_log (id DESC);
CREATE INDEX audit_log_by ON audit_log (by_project_id, id DESC);
CREATE INDEX audit_log_old ON audit_log (at);

CREATE FUNCTION memoryd_purge_audit(keep_days integer) RETURNS bigint     -- how many lines
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT AS $$
    WITH gone AS (
        DELETE FROM audit_log WHERE at < statement_timestamp() - make_interval(days => greatest(keep_days, 1)) RETURNING 1
    )
    SELECT count(*) FROM gone
$$;
REVOKE EXECUTE ON FUNCTION memoryd_purge_audit(integer) FROM PUBLIC;
COMMENT ON FUNCTION memoryd_purge_audit(integer) IS 'Deletes audit lines that are older than so many days; never younger than one.';

-- As in 0008, but for the audit log: its grants, and who sees which line.
CREATE OR REPLACE FUNCTION memoryd_raise_walls() RETURNS text      -- NULL: they stand; else why not, for people
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    -- Where a local setting was once made, it reads as '' later, not as NULL. The sub-select is evaluated once a statement.
    own       constant text := $own$(SELECT nullif(current_setting('memoryd.project', true), '')::bigint)$own$;
    role_name text;
    visible   text;
    found     record;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['memoryd_app', 'memoryd_system'] LOOP
        BEGIN
            IF to_regrole(role_name) IS NULL THEN       -- roles belong to the whole server: another database may have made them
                EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
            END IF;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;        -- another database's migration was faster
            WHEN insufficient_privilege THEN
                RETURN format('%s may not create roles', session_user);
        END;
        BEGIN
            IF NOT pg_has_role(session_user, role_name, 'SET') THEN
                EXECUTE format('GRANT %I TO %I WITH SET TRUE, INHERIT FALSE', role_name, session_user);
            END IF;
            -- FORCE hides every row from the owner, who has to see them all to migrate them.
            IF role_name = 'memoryd_system' AND NOT pg_has_role(session_user, role_name, 'USAGE') THEN
                EXECUTE format('GRANT %I TO %I WITH INHERIT TRUE', role_name, session_user);
            END IF;
        EXCEPTION WHEN insufficient_privilege THEN
            RETURN format('%s may not act as %s', session_user, role_name);
        END;
    END LOOP;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname IN ('memoryd_app', 'memoryd_system') AND (rolsuper OR rolbypassrls)) THEN
        RETURN 'memoryd_app or memoryd_system bypasses row-level security';
    END IF;

    EXECUTE format('GRANT USAGE ON SCHEMA %I TO memoryd_app, memoryd_system', current_schema());
    FOR found IN
        SELECT c.oid::regclass AS name, c.relname, c.relrowsecurity AND c.relforcerowsecurity AS guarded,
               EXISTS (SELECT FROM pg_attribute a
                       WHERE a.attrelid = c.oid AND a.attname = 'project_id' AND NOT a.attisdropped) AS is_tenants,
               EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'own_rows') AS has_own,
               EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'all_rows') AS has_all
        FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
          AND c.relowner = (SELECT o.relowner FROM pg_class o WHERE o.oid = 'schema_migrations'::regclass)  -- nobody else's
    LOOP
        IF found.relname = 'schema_migrations' THEN
            EXECUTE format('GRANT SELECT ON %s TO memoryd_app, memoryd_system', found.name);
            CONTINUE;
        END IF;
        IF found.relname = 'audit_log' THEN             -- what was written stays; memoryd_purge_audit alone deletes, by age
            EXECUTE format('GRANT SELECT, INSERT ON %s TO memoryd_app, memoryd_system', found.name);
            EXECUTE format('REVOKE UPDATE, DELETE, TRUNCATE ON %s FROM memoryd_app, memoryd_system', found.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO memoryd_system', found.name);
        END IF;
        -- Who may come in, and who belongs to a project, is no business of the project's work.
        IF found.is_tenants AND found.relname NOT IN ('api_keys', 'project_members', 'audit_log') THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO memoryd_app', found.name);
        ELSIF found.relname IN ('projects', 'organizations') THEN
            EXECUTE format('GRANT SELECT ON %s TO memoryd_app', found.name);
        ELSIF found.relname = 'embedding_models' THEN
            EXECUTE format('GRANT SELECT, INSERT ON %s TO memoryd_app', found.name);
        END IF;
        visible := CASE
            WHEN found.relname = 'audit_log' THEN format('%s IN (project_id, by_project_id)', own)
            WHEN found.is_tenants THEN format('project_id = %s', own)
            WHEN found.relname = 'projects' THEN format('id = %s', own)
            WHEN found.relname = 'organizations' THEN 'id IN (SELECT organization_id FROM projects)'
        END;
        IF visible IS NULL THEN
            CONTINUE;
        END IF;
        IF NOT found.has_own THEN
            EXECUTE format('CREATE POLICY own_rows ON %s TO memoryd_app USING (%s)', found.name, visible);
        END IF;
        IF NOT found.has_all THEN
            EXECUTE format('CREATE POLICY all_rows ON %s TO memoryd_system USING (true)', found.name);
        END IF;
        IF NOT found.guarded THEN
            EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', found.name);
        END IF;
    END LOOP;
    EXECUTE 'GRANT EXECUTE ON FUNCTION memoryd_purge_audit(integer) TO memoryd_system';
    RETURN NULL;
END
$$;
