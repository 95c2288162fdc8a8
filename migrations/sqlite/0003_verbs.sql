-- Turns between senders, the bin, pausing a step, what was meant to be started outside, and who is
-- sending a reply.

-- The higher goes first; the owner's own are 1.
ALTER TABLE transcribe_jobs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0
  CHECK (priority BETWEEN -9 AND 9);
-- The place among the jobs of other senders (P50); 0 where senders take no turns.
ALTER TABLE transcribe_jobs ADD COLUMN turn INTEGER NOT NULL DEFAULT 0 CHECK (turn >= 0);
-- How often an operation elsewhere was asked for and still ran.
ALTER TABLE transcribe_jobs ADD COLUMN polls INTEGER NOT NULL DEFAULT 0 CHECK (polls >= 0);
-- Names an operation before it is started, so that one whose id was never stored can be found.
ALTER TABLE transcribe_jobs ADD COLUMN recognition_intent TEXT CHECK (recognition_intent <> '');
-- When it went into the bin: only what has ended can lie there.
ALTER TABLE transcribe_jobs ADD COLUMN deleted TEXT
  CHECK (deleted GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z')
  CHECK (deleted IS NULL OR state IN ('done', 'failed', 'dead'));

-- Serves: claim, position, oldest waiting. Holds only jobs that may be claimed right now (S06).
DROP INDEX jobs_ready;
CREATE INDEX jobs_ready ON transcribe_jobs(state, priority DESC, turn, seq)
  WHERE acquisition_id IS NULL AND delay_time IS NULL
    AND state IN ('created', 'converted', 'transcribe');

-- Serves: the list by state, newest first; and the list of all.
DROP INDEX jobs_list;
CREATE INDEX jobs_list ON transcribe_jobs(state, seq) WHERE deleted IS NULL;
CREATE INDEX jobs_all ON transcribe_jobs(seq) WHERE deleted IS NULL;

-- Serves: the bin, and emptying it.
CREATE INDEX jobs_bin ON transcribe_jobs(seq) WHERE deleted IS NOT NULL;

-- Serves: a sender's next turn.
CREATE INDEX jobs_turns ON transcribe_jobs(sender, turn)
  WHERE polls = 0 AND state IN ('created', 'converted', 'transcribe');

-- The last turn that was worked on in the last step.
CREATE TABLE turn_clock(
  id INTEGER PRIMARY KEY NOT NULL CHECK (id = 1),
  turn INTEGER NOT NULL CHECK (turn >= 0)
) STRICT;

INSERT INTO turn_clock(id, turn) VALUES (1, 0);

-- The steps that the owner has paused: nothing is claimed for them.
CREATE TABLE paused_steps(
  step TEXT PRIMARY KEY NOT NULL CHECK (step IN ('convert', 'recognize', 'check')),
  paused_at TEXT NOT NULL
    CHECK (paused_at GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z')
) STRICT;

-- Counts leave out what lies in the bin.
DROP TRIGGER count_new_job;
DROP TRIGGER count_moved_job;
DROP TRIGGER count_deleted_job;

CREATE TRIGGER count_new_job AFTER INSERT ON transcribe_jobs
WHEN NEW.deleted IS NULL
BEGIN
  UPDATE job_counts SET jobs = jobs + 1 WHERE state = NEW.state;
END;

CREATE TRIGGER count_moved_job AFTER UPDATE OF state, deleted ON transcribe_jobs
WHEN OLD.state <> NEW.state OR (OLD.deleted IS NULL) <> (NEW.deleted IS NULL)
BEGIN
  UPDATE job_counts SET jobs = jobs - 1 WHERE state = OLD.state AND OLD.deleted IS NULL;
  UPDATE job_counts SET jobs = jobs + 1 WHERE state = NEW.state AND NEW.deleted IS NULL;
END;

CREATE TRIGGER count_deleted_job AFTER DELETE ON transcribe_jobs
WHEN OLD.deleted IS NULL
BEGIN
  UPDATE job_counts SET jobs = jobs - 1 WHERE state = OLD.state;
END;

-- The timeline learns two more things that can happen; a CHECK changes only with its table. Its
-- numbers order the lines of a job, for which no AUTOINCREMENT is needed: that costs each line a write.
CREATE TABLE job_events_anew(
  id INTEGER PRIMARY KEY,
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
    'worker_lost', 'lease_ended', 'revived', 'cancelled', 'deleted', 'undeleted')),
  error_code TEXT,
  error_text TEXT,
  seconds REAL CHECK (seconds >= 0)
) STRICT;

INSERT INTO job_events_anew(
  id, job, time, state, step, worker, attempt, outcome, error_code, error_text, seconds)
SELECT id, job, time, state, step, worker, attempt, outcome, error_code, error_text, seconds
FROM job_events;

DROP TABLE job_events;
ALTER TABLE job_events_anew RENAME TO job_events;

-- Serves: the timeline of one job.
CREATE INDEX job_events_job ON job_events(job, id);

-- The process that is sending a reply: a reply whose sender is gone is doubtful (P47).
ALTER TABLE replies ADD COLUMN worker TEXT CHECK (worker <> '');
