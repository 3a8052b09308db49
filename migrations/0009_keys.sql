-- What a key may do, until when, and for which owners.
-- Three columns with constant defaults: ALTER TABLE locks the small directory table for an instant and rewrites nothing.
-- Keys that exist may do everything, as before. The previous release does not know these columns: it lets every key do
-- everything, so make restricted keys when no process of it runs any more.

ALTER TABLE api_keys
    ADD COLUMN scopes text[] NOT NULL DEFAULT '{memories:read,memories:write,memories:delete,webhooks,exports,admin}'
        CHECK (cardinality(scopes) > 0 AND scopes <@ '{memories:read,memories:write,memories:delete,webhooks,exports,admin}'),
    ADD COLUMN expires_at timestamptz,                  -- NULL: never
    ADD COLUMN pins jsonb NOT NULL DEFAULT '{}'         -- owner field → patterns, such as {"user_id": ["alice*"]}
        CHECK (jsonb_typeof(pins) = 'object');
