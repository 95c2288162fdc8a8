-- The statements about bots, chats, the messages of jobs, and upload links.

-- name: know_bot  a bot that has told its name
INSERT INTO telegram_bots(id, username, sees_all, updated, last_answer)
VALUES(:id, :username, :sees_all, :now, :now)
ON CONFLICT(id) DO UPDATE SET
  username = excluded.username, sees_all = excluded.sees_all,
  last_answer = excluded.last_answer, trouble = NULL
RETURNING id, username, sees_all, read_up_to, updated, last_answer, trouble

-- name: bot  one bot
SELECT id, username, sees_all, read_up_to, updated, last_answer, trouble
FROM telegram_bots
WHERE id = :id

-- name: newest_bot  the bot that Telegram answered last
SELECT id, username, sees_all, read_up_to, updated, last_answer, trouble
FROM telegram_bots
ORDER BY last_answer DESC
LIMIT 1

-- name: bot_heard  Telegram answered, and whether all is well
UPDATE telegram_bots
SET last_answer = :now, trouble = :trouble
WHERE id = :id

-- name: bot_trouble  what is wrong since the last answer
UPDATE telegram_bots
SET trouble = :trouble
WHERE id = :id

-- name: update_done  everything up to this update is dealt with
UPDATE telegram_bots
SET read_up_to = :read_up_to, updated = :now
WHERE id = :id

-- name: see_chat  a chat that something came from
INSERT INTO telegram_chats(id, kind, title, mode, last_seen, created)
VALUES(:id, :kind, :title, :mode, :now, :now)
ON CONFLICT(id) DO UPDATE SET
  kind = excluded.kind, title = excluded.title, is_member = 1, last_seen = excluded.last_seen
RETURNING id, kind, title, access, mode, language, migrated_to, is_member, last_refusal,
  last_seen, created

-- name: chat  one chat
SELECT id, kind, title, access, mode, language, migrated_to, is_member, last_refusal,
  last_seen, created
FROM telegram_chats
WHERE id = :id

-- name: chats  the chats heard of last, without those that have moved
SELECT id, kind, title, access, mode, language, migrated_to, is_member, last_refusal,
  last_seen, created
FROM telegram_chats INDEXED BY telegram_chats_seen
WHERE migrated_to IS NULL
ORDER BY last_seen DESC, id
LIMIT :limit

-- name: titles  what some chats are called
SELECT id, title
FROM telegram_chats
WHERE id IN (SELECT value FROM json_each(:ids))

-- name: set_access  the owner's word on a chat
UPDATE telegram_chats
SET access = :access
WHERE id = :id

-- name: set_mode  which recordings of a chat become text
UPDATE telegram_chats
SET mode = :mode
WHERE id = :id

-- name: set_language  what /lang chose
UPDATE telegram_chats
SET language = :language
WHERE id = :id

-- name: set_member  whether the bot is in the chat
UPDATE telegram_chats
SET is_member = :is_member
WHERE id = :id

-- name: note_refusal  the chat is being told that it is not allowed; nothing when it was just told
UPDATE telegram_chats
SET last_refusal = :now
WHERE id = :id AND (last_refusal IS NULL OR last_refusal <= :before OR last_refusal > :now)

-- name: move_chat  a group lives on under another number, with what was set for it
INSERT INTO telegram_chats(id, kind, title, access, mode, language, last_seen, created)
SELECT :new, 'supergroup', title, access, mode, language, :now, :now
FROM telegram_chats
WHERE id = :old
ON CONFLICT(id) DO UPDATE SET
  access = CASE WHEN access = 'unset' THEN excluded.access ELSE access END,
  mode = excluded.mode, language = coalesce(language, excluded.language)

-- name: leave_chat  the number that the group had before
UPDATE telegram_chats
SET migrated_to = :new, is_member = 0
WHERE id = :old

-- name: add_message  the message that a job answers
INSERT INTO telegram_messages(
  job, bot, chat, message, thread, album, person, language, created, updated)
VALUES(:job, :bot, :chat, :message, :thread, :album, :person, :language, :now, :now)
ON CONFLICT DO NOTHING

-- name: message_of_job  the message that a job answers
SELECT job, bot, chat, message, thread, album, person, language, status_message, shows, status
FROM telegram_messages
WHERE job = :job

-- name: message_at  the job that stands for a message
SELECT job, bot, chat, message, thread, album, person, language, status_message, shows, status
FROM telegram_messages
WHERE bot = :bot AND chat = :chat AND message = :message

-- name: message_by_status  the job whose status message this is; an album's is that of several
SELECT job, bot, chat, message, thread, album, person, language, status_message, shows, status
FROM telegram_messages INDEXED BY telegram_messages_status
WHERE status_message IS NOT NULL AND bot = :bot AND chat = :chat
  AND status_message = :status_message
ORDER BY message

-- name: due_messages  the status messages to send or to edit, oldest first, some of each chat
SELECT job, bot, chat, message, thread, album, person, language, status_message, shows, status
FROM (
  SELECT *, row_number() OVER (PARTITION BY chat ORDER BY created, message) AS place
  FROM telegram_messages INDEXED BY telegram_messages_due
  WHERE status = 'due')
WHERE place <= :of_each_chat
ORDER BY created, message
LIMIT :limit

-- name: album  the recordings of one album, in the order they were sent
SELECT job, bot, chat, message, thread, album, person, language, status_message, shows, status
FROM telegram_messages
WHERE chat = :chat AND album IS NOT NULL AND album = :album
ORDER BY message

-- name: set_status  what the status message is and shows
UPDATE telegram_messages
SET status_message = :status_message, shows = :shows, status = :status, updated = :now
WHERE job = :job

-- name: reopen_status  a revived job is shown again
UPDATE telegram_messages
SET status = 'due', updated = :now
WHERE job = :job

-- name: jobs_of_chat  the newest jobs of a chat that are not over
SELECT id
FROM transcribe_jobs INDEXED BY jobs_of_chat
WHERE tg_chat_id IS NOT NULL AND tg_chat_id = :chat
  AND state IN ('created', 'converted', 'transcribe')
ORDER BY seq DESC
LIMIT :limit

-- name: add_link  a link, its secret known to whoever was given it alone
INSERT INTO upload_links(
  token_hash, bot, chat, message, thread, person, language, created, expires)
VALUES(:token_hash, :bot, :chat, :message, :thread, :person, :language, :now, :expires)

-- name: link  a link, while it is good or once it was used
SELECT token_hash, bot, chat, message, thread, person, language, job, expires
FROM upload_links
WHERE token_hash = :token_hash AND (expires > :now OR job IS NOT NULL)

-- name: use_link  the job that came by a link
UPDATE upload_links
SET job = :job
WHERE token_hash = :token_hash AND job IS NULL

-- name: drop_old_links  links that were never used in time
DELETE FROM upload_links
WHERE expires <= :now AND job IS NULL
