-- name: any_owner  1 when somebody owns this service
SELECT 1
FROM owners
LIMIT 1;

-- name: owner_by_name  the account of a folded name
SELECT id, name, password_hash
FROM owners
WHERE name_key = :name_key;

-- name: owner_by_id  the account of a record id
SELECT id, name, password_hash
FROM owners
WHERE id = :id;

-- name: only_owner  the one account there is
SELECT id, name, password_hash
FROM owners
ORDER BY created, id
LIMIT 1;

-- name: add_owner  an account; the open invitation it takes says that it is the first
INSERT INTO owners(id, name, name_key, password_hash, created, updated)
VALUES (:id, :name, :name_key, :password_hash, :now, :now);

-- name: set_password  a new password for an account
UPDATE owners
SET password_hash = :password_hash, updated = :now
WHERE id = :id;

-- name: add_invitation  an invitation that ends by itself
INSERT INTO invitations(token_hash, created, expires)
VALUES (:token_hash, :now, :expires);

-- name: open_invitation  1 when this invitation can still be used
SELECT 1
FROM invitations
WHERE token_hash = :token_hash
  AND expires > :now
  AND NOT EXISTS (SELECT 1 FROM owners);

-- name: drop_invitations  every invitation ends
DELETE FROM invitations;

-- name: add_session  a signed-in browser
INSERT INTO sessions(id, token_hash, owner, user_agent, created, last_seen, expires)
VALUES (:id, :token_hash, :owner, :user_agent, :now, :now, :expires);

-- name: session_by_token  the live session of a cookie, with its owner's name
SELECT s.id, s.owner, o.name AS owner_name, s.user_agent, s.created, s.last_seen, s.expires
FROM sessions AS s
JOIN owners AS o ON o.id = s.owner
WHERE s.token_hash = :token_hash
  AND s.expires > :now
  AND s.last_seen > :idle_since;

-- name: list_sessions  the live sessions of an owner, newest first
SELECT s.id, s.owner, o.name AS owner_name, s.user_agent, s.created, s.last_seen, s.expires
FROM sessions AS s
JOIN owners AS o ON o.id = s.owner
WHERE s.owner = :owner
  AND s.expires > :now
  AND s.last_seen > :idle_since
ORDER BY s.created DESC, s.id;

-- name: touch_session  a session was seen
UPDATE sessions
SET last_seen = :now
WHERE id = :id;

-- name: end_session  one session of an owner ends
DELETE FROM sessions
WHERE id = :id
  AND owner = :owner;

-- name: end_other_sessions  all sessions of an owner end but one; an empty id keeps none
DELETE FROM sessions
WHERE owner = :owner
  AND id <> :keep;

-- name: end_all_sessions  every session ends
DELETE FROM sessions;

-- name: drop_ended_sessions  rows of sessions that ended by themselves
DELETE FROM sessions
WHERE expires <= :now
   OR last_seen <= :idle_since;

-- name: tries  what is known of a name or an address that failed to sign in
SELECT failures, tried, blocked_until
FROM login_tries
WHERE subject = :subject;

-- name: count_try  one more try, and how long the next one has to wait
INSERT INTO login_tries(subject, failures, tried, blocked_until)
VALUES (:subject, :failures, :now, :blocked_until)
ON CONFLICT(subject) DO UPDATE
SET failures = :failures, tried = :now, blocked_until = :blocked_until;

-- name: forget_tries  a right password clears the record of a name or an address
DELETE FROM login_tries
WHERE subject = :subject;

-- name: forget_old_tries  tries that nobody followed up
DELETE FROM login_tries
WHERE tried <= :long_ago;

-- name: add_token  a token for programs
INSERT INTO api_tokens(
  id, name, token_hash, prefix, may_intake, may_read, may_manage, created, last_used, revoked
)
VALUES (
  :id, :name, :token_hash, :prefix, :may_intake, :may_read, :may_manage, :now, NULL, NULL
);

-- name: token_name_taken  1 when a working token has this name
SELECT 1
FROM api_tokens
WHERE name = :name
  AND revoked IS NULL;

-- name: token_by_hash  the working token of a secret
SELECT id, name, prefix, may_intake, may_read, may_manage, created, last_used, revoked
FROM api_tokens
WHERE token_hash = :token_hash
  AND revoked IS NULL;

-- name: list_tokens  every token, the newest first
SELECT id, name, prefix, may_intake, may_read, may_manage, created, last_used, revoked
FROM api_tokens
ORDER BY created DESC, id;

-- name: touch_token  a token was used
UPDATE api_tokens
SET last_used = :now
WHERE id = :id;

-- name: revoke_token  a working token, found by its id or its name, works no more
UPDATE api_tokens
SET revoked = :now
WHERE (id = :id_or_name OR name = :id_or_name)
  AND revoked IS NULL;
