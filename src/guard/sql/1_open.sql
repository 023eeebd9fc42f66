-- SPDX-License-Identifier: Apache-2.0
-- The data layer of dibs: functions for any language, which keep a late or a lost writer from the data.
-- `dibs guard sql` prints this, `dibs guard install` runs it. It may be run again at any time: it makes what
-- is missing, replaces the functions, and touches nothing of a newer release.
--
-- Needs: CREATE on the database (for a new schema), or the schema's ownership. CREATE on the schema is taken from
-- everybody else: who may make functions here could have them called with the rights of others.
-- Errors that the functions raise, each with a DETAIL in JSON:
--   ZD001  the fence is older than one that was seen     {"key", "fence", "newest", "table"}
--   ZD002  no fence was given for this write             {"table", "key"}
--   ZD003  the version has changed since it was read     {"table", "version", "current"}
--   ZD004  no such row                                   {"table", "key"}
--   ZD005  the same request key with another payload     {"key"}
--   ZD006  a newer release of dibs was installed here    {"installed", "offered"}

BEGIN;

-- One installation at a time, of the store's tables too, which may be in the same schema.
SELECT pg_catalog.pg_advisory_xact_lock(7235419150021427571);
SELECT pg_catalog.set_config('client_min_messages', 'warning', true);
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

DO $do$
DECLARE
    offered constant int := {version};
    installed int;
    grantee text;
    stranger text;
    one text;
BEGIN
    IF pg_catalog.current_setting('server_version_num')::int < 130000 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = 'the guard needs PostgreSQL 13 or newer';
    END IF;
    IF pg_catalog.to_regnamespace({schema_text}) IS NULL THEN
        CREATE SCHEMA {schema};
    END IF;
    IF NOT pg_catalog.pg_has_role((SELECT n.nspowner FROM pg_catalog.pg_namespace n
                                   WHERE n.nspname = {schema_text}), 'USAGE') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = pg_catalog.format('the schema %I belongs to somebody else', {schema_text});
    END IF;
    IF pg_catalog.to_regclass({schema_text} || '.guard_version') IS NOT NULL THEN
        SELECT v.version INTO installed FROM {schema}.guard_version v;
        IF installed > offered THEN
            RAISE EXCEPTION USING ERRCODE = 'ZD006',
                MESSAGE = pg_catalog.format('version %s of the guard is installed, and this is version %s',
                                            installed, offered),
                DETAIL = pg_catalog.jsonb_build_object('installed', installed, 'offered', offered)::text,
                HINT = 'Use the newer release of dibs.';
        END IF;
    END IF;

    -- What is in this schema is called by functions that run with its owner's rights, and by the triggers of
    -- everybody's tables: nobody but the owner makes anything here.
    IF pg_catalog.has_schema_privilege('public', {schema_text}, 'CREATE') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_schema_definition',
            MESSAGE = pg_catalog.format('everybody may create in the schema %I', {schema_text}),
            HINT = pg_catalog.format('Take a schema of the guard''s own, or: REVOKE CREATE ON SCHEMA %I FROM PUBLIC.',
                                     {schema_text});
    END IF;
    FOR grantee IN SELECT DISTINCT a.grantee::regrole::text
                   FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
                   WHERE n.nspname = {schema_text} AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner LOOP
        EXECUTE pg_catalog.format('REVOKE CREATE ON SCHEMA {schema} FROM %s CASCADE', grantee);
    END LOOP;
    SELECT pg_catalog.string_agg(DISTINCT a.grantee::regrole::text, ', ') INTO grantee
        FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
        WHERE n.nspname = {schema_text} AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner;
    IF grantee IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = pg_catalog.format('%s may create in the schema %I, and that cannot be taken back here',
                                        grantee, {schema_text});
    END IF;
    -- Neither may anything of theirs be there already under a name of ours.
    SELECT pg_catalog.min(o.what) INTO stranger FROM (
        SELECT p.oid::regprocedure::text AS what, p.proowner AS owner FROM pg_catalog.pg_proc p
            WHERE p.pronamespace = {schema_text}::regnamespace AND p.proname = ANY ({functions})
        UNION ALL
        SELECT c.oid::regclass::text, c.relowner FROM pg_catalog.pg_class c
            WHERE c.relnamespace = {schema_text}::regnamespace AND c.relname = ANY ({relations})) o,
        pg_catalog.pg_namespace n
        WHERE n.nspname = {schema_text} AND o.owner <> n.nspowner
          AND o.owner <> (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
          AND NOT pg_catalog.pg_has_role(o.owner, n.nspowner, 'MEMBER');
    IF stranger IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = pg_catalog.format('%s is not of the schema''s owner', stranger),
            HINT = 'Whoever made it can have had the rights of the schema''s owner. Drop it, and look what it did.';
    END IF;

    IF installed IS NULL THEN
        CREATE TABLE {schema}.guard_version(version int NOT NULL);
        INSERT INTO {schema}.guard_version VALUES (0);
        installed := 0;
    END IF;

    -- Each step leads from the version before it. What was released is never changed, only followed by another.
    IF installed < 1 THEN
        -- Resources of which every write has to claim its fence first: dibs.claim().
        CREATE TABLE {schema}.guard_key(
            key text PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 1024),
            fence bigint NOT NULL CHECK (fence > 0),
            claimed_at timestamptz NOT NULL DEFAULT clock_timestamp()
        ) WITH (fillfactor = 70);  -- room for updates in place
        -- Refused claims. nextval() is what a rollback does not take back.
        CREATE SEQUENCE {schema}.refused_claims;
        -- Requests whose work has been committed, with what they were answered: dibs.begin_request().
        CREATE TABLE {schema}.guard_request(
            key text PRIMARY KEY CHECK (octet_length(key) BETWEEN 1 AND 1024),
            payload bytea NOT NULL,  -- SHA-256 of it
            result text,
            finished_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            expires_at timestamptz NOT NULL
        );
        CREATE INDEX guard_request_expires_at ON {schema}.guard_request(expires_at);
    END IF;

    -- 2: nothing new in the tables. A release of before would let others create in the schema again.

    IF installed < 3 THEN
        -- What was refused under a key: guard_refused(). Everybody may count, and nobody count back.
        FOREACH one IN ARRAY {key_counters} LOOP
            EXECUTE pg_catalog.format('CREATE SEQUENCE {schema}.%I', one);
            EXECUTE pg_catalog.format('GRANT USAGE, SELECT ON SEQUENCE {schema}.%I TO PUBLIC', one);
        END LOOP;
    END IF;

    UPDATE {schema}.guard_version v SET version = offered WHERE v.version < offered;
END
$do$;
