-- The queue's statements. `{job_columns}` is the one list of columns, app.job.Job (S07).
-- A statement that uses a partial index repeats its WHERE to the letter: SQLite does not infer it.

-- name: add_file  one physical copy
INSERT INTO files(id, file, location, object_key, size, sha256, media_type, created, updated)
VALUES(:id, :file, :location, :object_key, :size, :sha256, :media_type, :now, :now)

-- name: add_job  a job in its first state
INSERT INTO transcribe_jobs(
  id, state, source, display_name, language, source_file, file, sender,
  dedupe_key, dedupe_digest, tg_chat_id, tg_reply_message_id, priority, turn, created, updated)
VALUES(
  :id, 'created', :source, :display_name, :language, :file, :file, :sender,
  :dedupe_key, :dedupe_digest, :tg_chat_id, :tg_reply_message_id, :priority, :turn, :now, :now)
RETURNING {job_columns}

-- name: next_turn  after the sender's last that is still to be served, and what is worked on (P50)
-- What was cancelled or failed has cost nobody a turn; a check asked for again has one of its own.
SELECT 1 + max(
  (SELECT turn FROM turn_clock WHERE id = 1),
  coalesce((
    SELECT turn
    FROM transcribe_jobs INDEXED BY jobs_turns
    WHERE sender IS :sender
      AND polls = 0 AND state IN ('created', 'converted', 'transcribe')
    ORDER BY turn DESC
    LIMIT 1), 0)) AS turn

-- name: advance_turns  the turn that is being worked on
UPDATE turn_clock
SET turn = :turn
WHERE id = 1 AND turn < :turn

-- name: job_by_key  the job that a key was used for
SELECT {job_columns}
FROM transcribe_jobs
WHERE dedupe_key = :dedupe_key

-- name: job_by_bytes  the newest job of a sender with these bytes and this choice, unless it failed
SELECT {job_columns}
FROM transcribe_jobs
WHERE source_file IN (SELECT id FROM files WHERE sha256 = :sha256)
  AND sender IS :sender
  AND language IS :language
  AND state NOT IN ('failed', 'dead')
  AND deleted IS NULL
ORDER BY seq DESC
LIMIT 1

-- name: work_at_hand  what claim has to do in a state; a look at it needs no writer lock
SELECT
  NOT EXISTS(SELECT 1 FROM paused_steps WHERE step = :step) AS is_on,
  EXISTS(
    SELECT 1
    FROM transcribe_jobs INDEXED BY jobs_ready
    WHERE state = :state
      AND acquisition_id IS NULL AND delay_time IS NULL
      AND state IN ('created', 'converted', 'transcribe')) AS has_ready,
  EXISTS(
    SELECT 1
    FROM transcribe_jobs INDEXED BY jobs_paused
    WHERE state = :state
      AND delay_time IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
      AND delay_time <= :now)
  OR EXISTS(
    SELECT 1
    FROM transcribe_jobs INDEXED BY jobs_paused
    WHERE state = :state
      AND delay_time IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
      AND delay_time > :horizon) AS has_ended_pauses,
  EXISTS(
    SELECT 1
    FROM transcribe_jobs INDEXED BY jobs_held
    WHERE state = :state
      AND acquisition_id IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
      AND acquire_time <= :lease_start) AS has_ended_leases

-- name: end_pauses  jobs whose pause has ended become ready; bounded, so a storm cannot hold the lock
-- Two ranges, not one OR: an OR walks every paused job, 14 ms a claim at 90,000 of them.
UPDATE transcribe_jobs
SET delay_time = NULL, updated = :now
WHERE seq IN (
  SELECT seq FROM (
    SELECT seq
    FROM transcribe_jobs INDEXED BY jobs_paused
    WHERE state = :state
      AND delay_time IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
      AND delay_time <= :now
    ORDER BY delay_time
    LIMIT 100)
  UNION ALL
  SELECT seq FROM (
    SELECT seq
    FROM transcribe_jobs INDEXED BY jobs_paused
    WHERE state = :state
      AND delay_time IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
      AND delay_time > :horizon
    ORDER BY delay_time
    LIMIT 100))

-- name: end_leases  jobs whose lease has ended become ready; the attempt stays counted
UPDATE transcribe_jobs
SET acquisition_id = NULL, acquire_time = NULL, worker = NULL,
    error_code = 'lease_ended', error_text = NULL, updated = :now
WHERE seq IN (
  SELECT seq
  FROM transcribe_jobs INDEXED BY jobs_held
  WHERE state = :state
    AND acquisition_id IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
    AND acquire_time <= :lease_start
  ORDER BY acquire_time
  LIMIT 100)
RETURNING {job_columns}

-- name: claim  the first ready job of a state, claimed and returned in one step (P05, P06, P50)
UPDATE transcribe_jobs
SET acquisition_id = :acquisition_id, acquire_time = :now, worker = :worker,
    attempts = attempts + 1, progress = NULL, updated = :now
WHERE seq = (
  SELECT seq
  FROM transcribe_jobs INDEXED BY jobs_ready
  WHERE state = :state
    AND acquisition_id IS NULL AND delay_time IS NULL
    AND state IN ('created', 'converted', 'transcribe')
  ORDER BY priority DESC, turn, seq
  LIMIT 1)
RETURNING {job_columns}

-- name: bury  the job whose attempts are spent, by the one who claimed it (P14)
UPDATE transcribe_jobs
SET state = 'dead', ended_from = state,
    error_code = coalesce(error_code, 'worker_lost'),
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, progress = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id
RETURNING {job_columns}

-- name: report  progress and a renewed lease (P43)
UPDATE transcribe_jobs
SET progress = :progress, acquire_time = :now, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: add_piece  a finished part of a recognition; a part made again replaces the old one
INSERT INTO transcript_pieces(
  job, engine, number, start_seconds, end_seconds, language, segments, created)
VALUES(:id, :engine, :number, :start, :end, :language, :segments, :now)
ON CONFLICT(job, engine, number) DO UPDATE SET
  start_seconds = excluded.start_seconds, end_seconds = excluded.end_seconds,
  language = excluded.language, segments = excluded.segments, created = excluded.created

-- name: pieces  the kept parts of one engine, in order
SELECT number, start_seconds, end_seconds, engine, language, segments
FROM transcript_pieces
WHERE job = :id AND engine = :engine
ORDER BY number

-- name: drop_pieces  the parts of a job whose text is written
DELETE FROM transcript_pieces
WHERE job = :id

-- name: finish_convert  the convert step's columns
UPDATE transcribe_jobs
SET state = 'converted', file = :file, duration_seconds = :duration_seconds,
    playable_file = CASE WHEN :source_is_playable THEN source_file ELSE :file END,
    attempts = 0, progress = NULL, error_code = NULL, error_text = NULL,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: intend  the name of an operation that is about to be started
UPDATE transcribe_jobs
SET recognition_intent = :recognition_intent, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: finish_recognize  the recognize step's columns
UPDATE transcribe_jobs
SET state = 'transcribe', recognition_op_id = :recognition_op_id, recognizer = :recognizer,
    recognition_intent = NULL, polls = 0, delay_time = :delay_time,
    attempts = 0, progress = NULL, error_code = NULL, error_text = NULL,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: finish_check  the check step's columns
UPDATE transcribe_jobs
SET state = 'done', detected_language = :detected_language,
    attempts = 0, progress = NULL, error_code = NULL, error_text = NULL,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: put_transcript  the text of a job
INSERT INTO transcripts(job, transcription_text, segments, created, updated)
VALUES(:id, :text, :segments, :now, :now)
ON CONFLICT(job) DO UPDATE SET
  transcription_text = excluded.transcription_text, segments = excluded.segments,
  updated = excluded.updated

-- name: snooze  back for the next check, as a run without failure (P21)
-- Behind all that wait now: asked for in the order of acceptance alone, a thousand operations
-- would keep the first ones busy and never come to the last.
UPDATE transcribe_jobs
SET delay_time = :delay_time, attempts = 0, polls = polls + 1,
    turn = max(turn, coalesce((
      SELECT ready.turn + 1
      FROM transcribe_jobs AS ready INDEXED BY jobs_ready
      WHERE ready.state = :state
        AND ready.acquisition_id IS NULL AND ready.delay_time IS NULL
        AND ready.state IN ('created', 'converted', 'transcribe')
        AND ready.priority = :priority
      ORDER BY ready.turn DESC
      LIMIT 1), 0)),
    error_code = NULL, error_text = NULL,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: retry  back after a failure, once its pause has ended (P20)
UPDATE transcribe_jobs
SET delay_time = :delay_time, progress = NULL, error_code = :error_code, error_text = :error_text,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: fail  a step's verdict (P17)
UPDATE transcribe_jobs
SET state = 'failed', ended_from = state, progress = NULL,
    error_code = :error_code, error_text = :error_text,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: release  back unworked, the attempt not counted (P44)
UPDATE transcribe_jobs
SET attempts = max(attempts - 1, 0), progress = NULL,
    acquisition_id = NULL, acquire_time = NULL, worker = NULL, updated = :now
WHERE id = :id AND acquisition_id = :acquisition_id

-- name: holders  the workers that hold any claim
SELECT DISTINCT worker
FROM transcribe_jobs INDEXED BY jobs_held
WHERE acquisition_id IS NOT NULL AND state IN ('created', 'converted', 'transcribe')

-- name: release_worker  the claims of one lost worker; the attempts stay counted (P41)
UPDATE transcribe_jobs
SET acquisition_id = NULL, acquire_time = NULL, worker = NULL, progress = NULL,
    error_code = 'worker_lost', error_text = NULL, updated = :now
WHERE seq IN (
  SELECT seq
  FROM transcribe_jobs INDEXED BY jobs_held
  WHERE acquisition_id IS NOT NULL AND state IN ('created', 'converted', 'transcribe')
    AND worker = :worker)
RETURNING {job_columns}

-- name: pause_lost  a job whose worker ended in the middle of it again and again waits as well
UPDATE transcribe_jobs
SET delay_time = :delay_time, updated = :now
WHERE id = :id AND acquisition_id IS NULL AND state IN ('created', 'converted', 'transcribe')

-- name: revive  from an end back to where the job ended, or to its source, with a fresh start (P15)
UPDATE transcribe_jobs
SET state = CASE WHEN :from_source THEN 'created' ELSE ended_from END,
    file = CASE WHEN :from_source THEN source_file ELSE file END,
    playable_file = CASE WHEN :from_source THEN nullif(playable_file, file) ELSE playable_file END,
    ended_from = NULL, attempts = 0, polls = 0, progress = NULL,
    recognition_intent = CASE WHEN :from_source THEN NULL ELSE recognition_intent END,
    delay_time = NULL, acquisition_id = NULL, acquire_time = NULL, worker = NULL,
    error_code = NULL, error_text = NULL, updated = :now
WHERE id = :id AND state IN ('failed', 'dead') AND deleted IS NULL
RETURNING {job_columns}

-- name: cancel  an active job ends by the owner's or the sender's verdict (P48)
UPDATE transcribe_jobs
SET state = 'failed', ended_from = state, error_code = 'cancelled', error_text = NULL,
    delay_time = NULL, acquisition_id = NULL, acquire_time = NULL, worker = NULL,
    progress = NULL, updated = :now
WHERE id = :id AND state IN ('created', 'converted', 'transcribe')
RETURNING {job_columns}

-- name: delete  an ended job goes into the bin (S31)
UPDATE transcribe_jobs
SET deleted = :now, updated = :now
WHERE id = :id AND state IN ('done', 'failed', 'dead') AND deleted IS NULL
RETURNING {job_columns}

-- name: drop_owed_replies  of a job that goes on: how it ended before is not its end
DELETE FROM replies
WHERE job = :id AND state = 'owed'

-- name: undelete  out of the bin, while it is still there
UPDATE transcribe_jobs
SET deleted = NULL, updated = :now
WHERE id = :id AND deleted > :horizon
RETURNING {job_columns}

-- name: binned  jobs whose time in the bin is over
SELECT {job_columns}
FROM transcribe_jobs INDEXED BY jobs_bin
WHERE deleted IS NOT NULL AND deleted <= :horizon AND seq > :after
ORDER BY seq
LIMIT :limit

-- name: files_of_job  the rows of a job's copies
SELECT id, file, size, sha256, media_type, location, object_key
FROM files
WHERE id IN (
  SELECT source_file FROM transcribe_jobs WHERE id = :id
  UNION SELECT file FROM transcribe_jobs WHERE id = :id
  UNION SELECT playable_file FROM transcribe_jobs WHERE id = :id)

-- name: erase  a job whose time in the bin is over, and all that belongs to it
DELETE FROM transcribe_jobs
WHERE id = :id AND deleted <= :horizon

-- name: erase_file  the row of a copy that no job refers to
DELETE FROM files
WHERE id = :file

-- name: pause_step  no more claims for a step
INSERT INTO paused_steps(step, paused_at)
VALUES(:step, :now)
ON CONFLICT(step) DO NOTHING

-- name: resume_step  claims again
DELETE FROM paused_steps
WHERE step = :step

-- name: paused_steps  the paused steps and since when
SELECT step, paused_at
FROM paused_steps

-- name: owe_reply  the reply to a sender who can be answered (P25: HTTP has nobody to answer)
INSERT INTO replies(job, verdict, created, updated)
SELECT id, state, :now, :now
FROM transcribe_jobs
WHERE id = :id AND source = 'telegram'

-- name: add_event  what happened to a job
INSERT INTO job_events(
  job, time, state, step, worker, attempt, outcome, error_code, error_text, seconds)
VALUES(
  :job, :now, :state, :step, :worker, :attempt, :outcome, :error_code, :error_text, :seconds)

-- name: events  the timeline of one job
SELECT time, state, step, worker, attempt, outcome, error_code, error_text, seconds
FROM job_events
WHERE job = :id
ORDER BY id

-- name: job  one job, unless it lies in the bin
SELECT {job_columns}
FROM transcribe_jobs
WHERE id = :id AND deleted IS NULL

-- name: binned_job  one job that lies in the bin
SELECT {job_columns}
FROM transcribe_jobs
WHERE id = :id AND deleted IS NOT NULL

-- name: file  one file row
SELECT id, file, size, sha256, media_type, location, object_key
FROM files
WHERE id = :id

-- name: shown_file  one file row, unless what it belongs to lies in the bin
SELECT id, file, size, sha256, media_type, location, object_key
FROM files
WHERE id = :id
  AND (EXISTS(SELECT 1 FROM transcribe_jobs WHERE source_file = :id AND deleted IS NULL)
    OR EXISTS(SELECT 1 FROM transcribe_jobs WHERE file = :id AND deleted IS NULL)
    OR EXISTS(SELECT 1 FROM transcribe_jobs WHERE playable_file = :id AND deleted IS NULL))

-- name: transcript  the text of a job
SELECT transcription_text, segments
FROM transcripts
WHERE job = :id

-- name: page_all  jobs of every state, newest first
SELECT {job_columns}
FROM transcribe_jobs INDEXED BY jobs_all
WHERE deleted IS NULL AND seq < :before
ORDER BY seq DESC
LIMIT :limit

-- name: page_bin  jobs in the bin, newest first
SELECT {job_columns}
FROM transcribe_jobs INDEXED BY jobs_bin
WHERE deleted IS NOT NULL AND seq < :before
ORDER BY seq DESC
LIMIT :limit

-- name: page_of_state  jobs of one state, newest first
SELECT {job_columns}
FROM transcribe_jobs INDEXED BY jobs_list
WHERE state = :state AND deleted IS NULL AND seq < :before
ORDER BY seq DESC
LIMIT :limit

-- name: counts  jobs in each state
SELECT state, jobs
FROM job_counts

-- name: position  how many ready jobs of the state come before this one, itself included
SELECT (
  SELECT count(*)
  FROM transcribe_jobs INDEXED BY jobs_ready
  WHERE state = :state
    AND acquisition_id IS NULL AND delay_time IS NULL
    AND state IN ('created', 'converted', 'transcribe')
    AND priority > :priority
) + (
  SELECT count(*)
  FROM transcribe_jobs INDEXED BY jobs_ready
  WHERE state = :state
    AND acquisition_id IS NULL AND delay_time IS NULL
    AND state IN ('created', 'converted', 'transcribe')
    AND priority = :priority AND (turn, seq) <= (:turn, :seq))

-- name: oldest_waiting  when the oldest ready job of a state was accepted
SELECT created
FROM transcribe_jobs INDEXED BY jobs_list
WHERE state = :state AND deleted IS NULL
  AND acquisition_id IS NULL AND delay_time IS NULL
ORDER BY seq
LIMIT 1
