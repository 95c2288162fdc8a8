-- Accounts: the owner, invitations, sessions, log-in throttle and API tokens.
-- No secret is kept in clear: passwords as scrypt, everything else as SHA-256 in hex.
-- A time is `YYYY-MM-DD HH:MM:SS.mmmZ`, as in the first step.

CREATE TABLE owners(
  id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 15 AND id NOT GLOB '*[^a-z0-9]*'),
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  -- The name folded to one case and form: two spellings of one name are one account.
  name_key TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL CHECK (password_hash LIKE 'scrypt:%'),
  created TEXT NOT NULL CHECK (
    created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  updated TEXT NOT NULL CHECK (
    updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  )
) STRICT;

CREATE TABLE invitations(
  token_hash TEXT PRIMARY KEY NOT NULL CHECK (length(token_hash) = 64),
  created TEXT NOT NULL CHECK (
    created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  expires TEXT NOT NULL CHECK (
    expires > created AND
    expires GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  )
) STRICT;

CREATE TABLE sessions(
  id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 15 AND id NOT GLOB '*[^a-z0-9]*'),
  -- Unique, so that the look-up at each request is one index probe.
  token_hash TEXT NOT NULL UNIQUE CHECK (length(token_hash) = 64),
  owner TEXT NOT NULL REFERENCES owners(id) ON DELETE CASCADE,
  user_agent TEXT NOT NULL CHECK (length(user_agent) <= 200),
  created TEXT NOT NULL CHECK (
    created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  last_seen TEXT NOT NULL CHECK (
    last_seen GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  expires TEXT NOT NULL CHECK (
    expires > created AND
    expires GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  )
) STRICT;

-- For list_sessions and for ending all sessions of an owner; the foreign key needs it too.
CREATE INDEX sessions_by_owner ON sessions(owner, created, id);

CREATE TABLE login_tries(
  -- SHA-256 of the name or of the address: people type passwords into the name field.
  subject TEXT PRIMARY KEY NOT NULL CHECK (length(subject) = 64),
  failures INTEGER NOT NULL CHECK (failures > 0),
  tried TEXT NOT NULL CHECK (
    tried GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  blocked_until TEXT NOT NULL CHECK (
    blocked_until >= tried AND
    blocked_until GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  )
) STRICT;

CREATE TABLE api_tokens(
  id TEXT PRIMARY KEY NOT NULL CHECK (length(id) = 15 AND id NOT GLOB '*[^a-z0-9]*'),
  name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
  token_hash TEXT NOT NULL UNIQUE CHECK (length(token_hash) = 64),
  -- The first characters, so that a token found somewhere can be told to its name.
  prefix TEXT NOT NULL CHECK (length(prefix) = 12),
  may_intake INTEGER NOT NULL CHECK (may_intake IN (0, 1)),
  may_read INTEGER NOT NULL CHECK (may_read IN (0, 1)),
  may_manage INTEGER NOT NULL CHECK (may_manage IN (0, 1)),
  created TEXT NOT NULL CHECK (
    created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  last_used TEXT CHECK (
    last_used GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  revoked TEXT CHECK (
    revoked GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'
  ),
  CHECK (may_intake + may_read + may_manage > 0)
) STRICT;

-- A name stands for one token that works; a revoked one leaves its name free.
CREATE UNIQUE INDEX api_tokens_by_name ON api_tokens(name) WHERE revoked IS NULL;
