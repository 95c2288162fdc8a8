-- Telegram: how far a bot has read, the chats it has seen, whose message a job answers, and the
-- links by which one recording too large for Telegram comes in.

CREATE TABLE telegram_bots(
  -- Telegram's number of the bot; another token may be another bot, with updates of its own.
  id INTEGER PRIMARY KEY NOT NULL,
  username TEXT NOT NULL,
  -- Telegram shows it all messages of groups (privacy mode is off).
  sees_all INTEGER NOT NULL DEFAULT 0 CHECK (sees_all IN (0, 1)),
  -- Everything up to this update is dealt with; the next question for news confirms it.
  read_up_to INTEGER NOT NULL DEFAULT 0,
  updated TEXT NOT NULL
    CHECK (updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  -- When Telegram last gave an answer, and what is wrong since; NULL: nothing.
  last_answer TEXT
    CHECK (last_answer GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  trouble TEXT CHECK (trouble IN ('unreachable', 'conflict', 'refused', 'stuck'))
) STRICT;

CREATE TABLE telegram_chats(
  -- Telegram's number; a person's private chat has the number of the person.
  id INTEGER PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('private', 'group', 'supergroup', 'channel')),
  title TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 255),
  -- The owner's word; a chat that is only known has none, and the settings decide.
  access TEXT NOT NULL DEFAULT 'unset' CHECK (access IN ('unset', 'allowed', 'denied')),
  mode TEXT NOT NULL CHECK (mode IN ('all', 'on_request', 'off')),
  -- What /lang chose; NULL: by the person's own language.
  language TEXT CHECK (language IN ('en', 'ru')),
  -- Where a group went when it became a supergroup.
  migrated_to INTEGER,
  is_member INTEGER NOT NULL DEFAULT 1 CHECK (is_member IN (0, 1)),
  -- When it was last told that it is not allowed, so that it is not told at each message.
  last_refusal TEXT
    CHECK (last_refusal GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  last_seen TEXT NOT NULL
    CHECK (last_seen GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  CHECK (migrated_to IS NULL OR migrated_to <> id)
) STRICT;

-- Serves: the owner's list of chats, those heard of last first.
CREATE INDEX telegram_chats_seen ON telegram_chats(last_seen DESC, id);

-- The recording's message that a job answers, and the one message that tells how the job stands.
CREATE TABLE telegram_messages(
  job TEXT PRIMARY KEY NOT NULL REFERENCES transcribe_jobs(id) ON DELETE CASCADE,
  -- Numbers of chats and messages mean something only to the bot that was given them.
  bot INTEGER NOT NULL,
  chat INTEGER NOT NULL,
  message INTEGER NOT NULL,
  -- The topic of a forum.
  thread INTEGER,
  -- Recordings sent in one go share Telegram's media_group_id, and one status message.
  album TEXT CHECK (album <> ''),
  -- Who sent it; NULL for a channel's or an anonymous admin's.
  person INTEGER,
  language TEXT NOT NULL CHECK (language IN ('en', 'ru')),
  -- The acknowledgement, once it is sent, and what stands in it.
  status_message INTEGER,
  shows TEXT,
  -- 'due' until the job's end is shown, or nothing can be shown any more.
  status TEXT NOT NULL DEFAULT 'due' CHECK (status IN ('due', 'closed')),
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  updated TEXT NOT NULL
    CHECK (updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  UNIQUE (bot, chat, message)
) STRICT;

-- Serves: the status messages to send or to edit.
CREATE INDEX telegram_messages_due ON telegram_messages(created) WHERE status = 'due';
-- Serves: a reply to a status message.
CREATE INDEX telegram_messages_status ON telegram_messages(chat, status_message)
  WHERE status_message IS NOT NULL;
-- Serves: the other recordings of an album.
CREATE INDEX telegram_messages_album ON telegram_messages(chat, album) WHERE album IS NOT NULL;

-- Serves: what a chat waits for. Jobs of other doors are not in it.
CREATE INDEX jobs_of_chat ON transcribe_jobs(tg_chat_id, seq)
  WHERE tg_chat_id IS NOT NULL AND state IN ('created', 'converted', 'transcribe');

-- A link is good for one recording: for a message whose file is too large, or made by the owner.
CREATE TABLE upload_links(
  token_hash TEXT PRIMARY KEY NOT NULL CHECK (length(token_hash) = 64),
  bot INTEGER,
  chat INTEGER,
  message INTEGER,
  thread INTEGER,
  person INTEGER,
  language TEXT NOT NULL CHECK (language IN ('en', 'ru')),
  -- The job that came by it; with it the link is used up.
  job TEXT REFERENCES transcribe_jobs(id) ON DELETE CASCADE,
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  expires TEXT NOT NULL
    CHECK (expires > created AND
      expires GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  CHECK ((chat IS NULL) = (message IS NULL)),
  CHECK ((chat IS NULL) = (bot IS NULL))
) STRICT;

CREATE INDEX upload_links_expires ON upload_links(expires);
CREATE INDEX upload_links_job ON upload_links(job) WHERE job IS NOT NULL;
