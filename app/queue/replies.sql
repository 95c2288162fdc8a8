-- The statements of the replies owed to senders. `{job_columns}` is app.job.Job's list.

-- name: take_reply  the oldest owed reply, marked as being sent before anything is sent (P47)
-- What lies in the bin waits there, all but the word that it was cancelled.
UPDATE replies
SET state = 'sending', worker = :worker, updated = :now
WHERE id = (
  SELECT id
  FROM replies INDEXED BY replies_owed
  WHERE state IN ('owed', 'sending') AND state = 'owed'
    AND NOT EXISTS(
      SELECT 1
      FROM transcribe_jobs
      WHERE id = replies.job AND deleted IS NOT NULL AND error_code IS NOT 'cancelled')
  ORDER BY id
  LIMIT 1)
RETURNING id, job, verdict, state, reason, parts_sent, created

-- name: has_owed  1 when take_reply would find any, without taking the writer lock
SELECT EXISTS(
  SELECT 1
  FROM replies INDEXED BY replies_owed
  WHERE state IN ('owed', 'sending') AND state = 'owed'
    AND NOT EXISTS(
      SELECT 1
      FROM transcribe_jobs
      WHERE id = replies.job AND deleted IS NOT NULL AND error_code IS NOT 'cancelled'))

-- name: reply_job  the job that a reply is about, in the bin too
SELECT {job_columns}
FROM transcribe_jobs
WHERE id = :id

-- name: reply_text  the text that a reply carries
SELECT transcription_text, segments
FROM transcripts
WHERE job = :id

-- name: part_sent  one more part has surely arrived
UPDATE replies
SET parts_sent = :parts_sent, updated = :now
WHERE id = :id AND state = 'sending' AND worker = :worker

-- name: settle_reply  how the sending ended
UPDATE replies
SET state = :state, reason = :reason, worker = NULL, updated = :now
WHERE id = :id AND state = 'sending' AND worker = :worker

-- name: senders_of_replies  the processes that are sending one
SELECT DISTINCT worker
FROM replies INDEXED BY replies_owed
WHERE state IN ('owed', 'sending') AND worker IS NOT NULL

-- name: doubt_replies  what a lost process was sending may have arrived, or not: never sent again
UPDATE replies
SET state = 'doubtful', worker = NULL, updated = :now
WHERE state IN ('owed', 'sending') AND worker = :worker
RETURNING id, job, verdict, state, reason, parts_sent, created

-- name: expire_replies  what nobody came to send in time; bounded, so a heap cannot hold the lock
UPDATE replies
SET state = 'undelivered', reason = 'intake_down', updated = :now
WHERE id IN (
  SELECT id
  FROM replies INDEXED BY replies_owed
  WHERE state IN ('owed', 'sending') AND state = 'owed' AND updated <= :horizon
    AND NOT EXISTS(
      SELECT 1
      FROM transcribe_jobs
      WHERE id = replies.job AND deleted IS NOT NULL AND error_code IS NOT 'cancelled')
  ORDER BY id
  LIMIT 100)
RETURNING id, job, verdict, state, reason, parts_sent, created

-- name: has_expired  1 when expire_replies has anything to do
SELECT EXISTS(
  SELECT 1
  FROM replies INDEXED BY replies_owed
  WHERE state IN ('owed', 'sending') AND state = 'owed' AND updated <= :horizon
    AND NOT EXISTS(
      SELECT 1
      FROM transcribe_jobs
      WHERE id = replies.job AND deleted IS NOT NULL AND error_code IS NOT 'cancelled'))

-- name: replies_of_job  what became of a job's replies, oldest first
SELECT id, job, verdict, state, reason, parts_sent, created
FROM replies
WHERE job = :id
ORDER BY id

-- name: owe_again  a new reply in the place of one that did not surely arrive
INSERT INTO replies(job, verdict, created, updated)
SELECT job, verdict, :now, :now
FROM replies
WHERE id = (SELECT max(id) FROM replies WHERE job = :id)
  AND state IN ('undelivered', 'doubtful')
  AND EXISTS(
    SELECT 1
    FROM transcribe_jobs
    WHERE id = :id AND state = replies.verdict AND deleted IS NULL)
RETURNING id, job, verdict, state, reason, parts_sent, created
