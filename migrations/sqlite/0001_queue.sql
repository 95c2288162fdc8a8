-- The queue, its files and its texts. Times are text of one form (P12): a CHECK on each keeps
-- any other form out, since a time of another form would hide a job for ever without a word.

-- One row for each physical copy of a recording.
CREATE TABLE files(
  id TEXT PRIMARY KEY NOT NULL
    CHECK (length(id) = 15 AND id NOT GLOB '*[^a-z0-9]*'),
  file TEXT NOT NULL,
  location TEXT NOT NULL CHECK (location IN ('local', 's3')),
  object_key TEXT NOT NULL DEFAULT '',
  size INTEGER NOT NULL CHECK (size >= 0),
  sha256 TEXT CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
  media_type TEXT NOT NULL,
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  updated TEXT NOT NULL
    CHECK (updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  CHECK ((location = 'local' AND file <> '' AND object_key = '')
      OR (location = 's3' AND file = '' AND object_key <> ''))
) STRICT;

-- Serves: the same bytes handed in again.
CREATE INDEX files_sha256 ON files(sha256) WHERE sha256 IS NOT NULL;

-- The job and the queue itself. seq is the order of acceptance, never used twice (P06).
CREATE TABLE transcribe_jobs(
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE
    CHECK (length(id) = 15 AND id NOT GLOB '*[^a-z0-9]*'),
  state TEXT NOT NULL
    CHECK (state IN ('created', 'converted', 'transcribe', 'done', 'failed', 'dead')),
  source TEXT NOT NULL CHECK (source IN ('api', 'web', 'telegram', 'unknown')),
  display_name TEXT NOT NULL CHECK (length(display_name) BETWEEN 1 AND 255),
  language TEXT CHECK (length(language) BETWEEN 2 AND 3 AND language NOT GLOB '*[^a-z]*'),
  source_file TEXT NOT NULL REFERENCES files(id),
  file TEXT NOT NULL REFERENCES files(id),
  delay_time TEXT
    CHECK (delay_time GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  acquisition_id TEXT CHECK (acquisition_id <> ''),
  acquire_time TEXT
    CHECK (acquire_time GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  worker TEXT CHECK (worker <> ''),
  attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  recognition_op_id TEXT CHECK (recognition_op_id <> ''),
  progress REAL CHECK (progress BETWEEN 0 AND 1),
  duration_seconds REAL CHECK (duration_seconds >= 0),
  detected_language TEXT CHECK (detected_language <> ''),
  recognizer TEXT CHECK (recognizer <> ''),
  playable_file TEXT REFERENCES files(id),
  error_code TEXT CHECK (error_code <> ''),
  error_text TEXT,
  ended_from TEXT CHECK (ended_from IN ('created', 'converted', 'transcribe')),
  sender TEXT,
  dedupe_key TEXT UNIQUE,
  dedupe_digest TEXT,
  tg_chat_id INTEGER,
  tg_reply_message_id INTEGER,
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  updated TEXT NOT NULL
    CHECK (updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  -- A claim is whole or not there at all.
  CHECK ((acquisition_id IS NULL) = (acquire_time IS NULL)),
  CHECK ((acquisition_id IS NULL) = (worker IS NULL)),
  -- A claimed job has no pause; an ended one has neither claim nor pause.
  CHECK (acquisition_id IS NULL OR delay_time IS NULL),
  CHECK (state IN ('created', 'converted', 'transcribe')
      OR (acquisition_id IS NULL AND delay_time IS NULL)),
  -- Who failed says why, and knows where to return.
  CHECK (state NOT IN ('failed', 'dead') OR (error_code IS NOT NULL AND ended_from IS NOT NULL))
) STRICT;

-- Serves: claim, position, oldest waiting. Holds only jobs that may be claimed right now (S06).
CREATE INDEX jobs_ready ON transcribe_jobs(state, seq)
  WHERE acquisition_id IS NULL AND delay_time IS NULL
    AND state IN ('created', 'converted', 'transcribe');

-- Serves: making jobs claimable whose pause has ended.
CREATE INDEX jobs_paused ON transcribe_jobs(state, delay_time)
  WHERE delay_time IS NOT NULL AND state IN ('created', 'converted', 'transcribe');

-- Serves: making jobs claimable whose lease has ended, and finding claims of lost workers.
CREATE INDEX jobs_held ON transcribe_jobs(state, acquire_time)
  WHERE acquisition_id IS NOT NULL AND state IN ('created', 'converted', 'transcribe');

-- Serves: the list by state, newest first.
CREATE INDEX jobs_list ON transcribe_jobs(state, seq);

-- Serves: the same bytes handed in again; deleting a file.
CREATE INDEX jobs_source_file ON transcribe_jobs(source_file);
CREATE INDEX jobs_file ON transcribe_jobs(file);
CREATE INDEX jobs_playable_file ON transcribe_jobs(playable_file) WHERE playable_file IS NOT NULL;

-- The text lies apart: read with the row, an hour of speech would be read at each claim and list.
CREATE TABLE transcripts(
  job TEXT PRIMARY KEY NOT NULL REFERENCES transcribe_jobs(id) ON DELETE CASCADE,
  transcription_text TEXT NOT NULL,
  segments TEXT NOT NULL CHECK (segments LIKE '[%]'),
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  updated TEXT NOT NULL
    CHECK (updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z')
) STRICT;

-- Finished parts of a recognition that is still going on; gone when the job ends with a text.
CREATE TABLE transcript_pieces(
  job TEXT NOT NULL REFERENCES transcribe_jobs(id) ON DELETE CASCADE,
  engine TEXT NOT NULL,
  number INTEGER NOT NULL CHECK (number >= 0),
  start_seconds REAL NOT NULL CHECK (start_seconds >= 0),
  end_seconds REAL NOT NULL,
  language TEXT,
  segments TEXT NOT NULL CHECK (segments LIKE '[%]'),
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  PRIMARY KEY (job, engine, number),
  CHECK (end_seconds >= start_seconds)
) STRICT;

-- What happened to a job, written in the transaction that changes it (P42).
CREATE TABLE job_events(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES transcribe_jobs(id) ON DELETE CASCADE,
  time TEXT NOT NULL
    CHECK (time GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  state TEXT NOT NULL
    CHECK (state IN ('created', 'converted', 'transcribe', 'done', 'failed', 'dead')),
  step TEXT CHECK (step IN ('convert', 'recognize', 'check')),
  worker TEXT,
  attempt INTEGER NOT NULL CHECK (attempt >= 0),
  outcome TEXT NOT NULL CHECK (outcome IN (
    'accepted', 'success', 'failure', 'failed', 'dead', 'released',
    'worker_lost', 'lease_ended', 'revived', 'cancelled')),
  error_code TEXT,
  error_text TEXT,
  seconds REAL CHECK (seconds >= 0)
) STRICT;

-- Serves: the timeline of one job.
CREATE INDEX job_events_job ON job_events(job, id);

-- The reply owed to the sender of an ended job, written in the transaction that ends it (P47).
CREATE TABLE replies(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL REFERENCES transcribe_jobs(id) ON DELETE CASCADE,
  verdict TEXT NOT NULL CHECK (verdict IN ('done', 'failed', 'dead')),
  state TEXT NOT NULL DEFAULT 'owed'
    CHECK (state IN ('owed', 'sending', 'sent', 'undelivered', 'doubtful')),
  reason TEXT CHECK (reason IN ('intake_down', 'no_addressee', 'rejected', 'unreachable')),
  parts_sent INTEGER NOT NULL DEFAULT 0 CHECK (parts_sent >= 0),
  created TEXT NOT NULL
    CHECK (created GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  updated TEXT NOT NULL
    CHECK (updated GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z'),
  CHECK ((state = 'undelivered') = (reason IS NOT NULL))
) STRICT;

-- Serves: the sender of replies, oldest first.
CREATE INDEX replies_owed ON replies(id) WHERE state IN ('owed', 'sending');
CREATE INDEX replies_job ON replies(job);

-- How many jobs are in each state, kept by triggers: counting rows would cost more with each job.
CREATE TABLE job_counts(
  state TEXT PRIMARY KEY NOT NULL
    CHECK (state IN ('created', 'converted', 'transcribe', 'done', 'failed', 'dead')),
  jobs INTEGER NOT NULL CHECK (jobs >= 0)
) STRICT;

INSERT INTO job_counts(state, jobs)
VALUES ('created', 0), ('converted', 0), ('transcribe', 0), ('done', 0), ('failed', 0), ('dead', 0);

CREATE TRIGGER count_new_job AFTER INSERT ON transcribe_jobs
BEGIN
  UPDATE job_counts SET jobs = jobs + 1 WHERE state = NEW.state;
END;

CREATE TRIGGER count_moved_job AFTER UPDATE OF state ON transcribe_jobs
WHEN OLD.state <> NEW.state
BEGIN
  UPDATE job_counts SET jobs = jobs - 1 WHERE state = OLD.state;
  UPDATE job_counts SET jobs = jobs + 1 WHERE state = NEW.state;
END;

CREATE TRIGGER count_deleted_job AFTER DELETE ON transcribe_jobs
BEGIN
  UPDATE job_counts SET jobs = jobs - 1 WHERE state = OLD.state;
END;
