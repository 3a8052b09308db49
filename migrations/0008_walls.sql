-- The second wall between tenants: row-level security, in case a statement ever forgets to name its project.
--
-- memoryd_app     does the work of one project: it sees the rows of the project that `memoryd.project` names, and no others.
-- memoryd_system  does the work over all of them: keys, claims of events, the directory. Its statements are few and audited.
-- Neither owns a table, and neither can log in: the connections of the service become one or the other (SET ROLE). FORCE
-- holds the owner too; as a member of memoryd_system it still migrates data.
--
-- `memoryd migrate` calls this function after the files of every run, so that tables of later files stand behind the wall
-- too. Enabling row-level security locks a table for an instant, and only where it was not enabled; no row is touched.
-- The previous release goes on working as long as it connects as the owner or a superuser.

CREATE FUNCTION memoryd_raise_walls() RETURNS text      -- NULL: they stand; else why not, for people
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
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO memoryd_system', found.name);
        -- Who may come in, and who belongs to a project, is no business of the project's work.
        IF found.is_tenants AND found.relname NOT IN ('api_keys', 'project_members') THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO memoryd_app', found.name);
        ELSIF found.relname IN ('projects', 'organizations') THEN
            EXECUTE format('GRANT SELECT ON %s TO memoryd_app', found.name);
        ELSIF found.relname = 'embedding_models' THEN
            EXECUTE format('GRANT SELECT, INSERT ON %s TO memoryd_app', found.name);
        END IF;
        visible := CASE
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
    RETURN NULL;
END
$$;
REVOKE EXECUTE ON FUNCTION memoryd_raise_walls() FROM PUBLIC;
COMMENT ON FUNCTION memoryd_raise_walls() IS 'Row-level security on every table with a project_id. Safe to repeat.';
