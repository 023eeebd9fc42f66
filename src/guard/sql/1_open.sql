-- SPDX-License-Identifier: Apache-2.0
-- The data layer of dibs: functions for any language, which keep a late or a lost writer from the data.
-- `dibs guard sql` prints this, `dibs guard install` runs it. It may be run again at any time: it makes what
-- is missing, replaces the functions, and touches nothing of a newer release.
--
-- Needs: CREATE on the database (for a new schema), or the schema's ownership.
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

DO $do$
DECLARE
    offered constant int := {version};
    installed int;
BEGIN
    IF pg_catalog.current_setting('server_version_num')::int < 130000 THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported', MESSAGE = 'the guard needs PostgreSQL 13 or newer';
    END IF;
    IF pg_catalog.to_regnamespace({schema_text}) IS NULL THEN
        CREATE SCHEMA {schema};
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

    UPDATE {schema}.guard_version v SET version = offered WHERE v.version < offered;
END
$do$;
