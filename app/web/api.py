"""The HTTP API: hand in, ask, list, and the verbs; docs/api.md tells it to people."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, jsonify, request, url_for

from app.clock import to_rfc3339
from app.errors import AppError
from app.job import Job, Source, State, Step
from app.queue.port import JobFilter
from app.queue.replies import Reply
from app.transcripts import MEDIA_TYPES, render
from app.web import actions, identity, received, told
from app.web.access import allow, hands_in, knows_id, manages, reads
from app.web.download_name import attachment, stem
from app.web.received import Reception
from app.web.services import now, services
from app.web.standing import standing
from app.web.wording import error_sentence

blueprint = Blueprint("api", __name__, url_prefix="/api")

MAX_PAGE = 200
_BIN = "bin"
_DEFAULT_PAGE = 50
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@blueprint.post("/jobs")
@allow(hands_in)
def hand_in() -> Response:
    """Accept a recording: 201 for a new job, 200 for the one that a repeated key stands for."""
    key = _idempotency_key()
    recording = _recording()
    enqueued = services().intake.accept(
        recording.take(),
        source=Source.API,
        display_name=recording.name,
        language=_language(),
        sender=identity.sender(),
        idempotency_key=key,
        now=now(),
    )
    url = url_for("api.show", job_id=enqueued.job.id)
    response = jsonify({**_describe(enqueued.job), "status_url": url})
    response.status_code = 201 if enqueued.created else 200
    response.headers["Location"] = url
    return response


@blueprint.get("/jobs/<job_id>")
@allow(knows_id)
def show(job_id: str) -> Response:
    """How a job stands, and its text when it is done."""
    return jsonify(_describe(services().queue.get(job_id)))


@blueprint.get("/jobs/<job_id>/transcript.<form>")
@allow(knows_id)
def transcript(job_id: str, form: str) -> Response:
    """The text as a file of one of the forms of app.transcripts."""
    if form not in MEDIA_TYPES:
        raise AppError("not_found")
    job = services().queue.get(job_id)
    found = services().queue.transcript(job_id) if job.state is State.DONE else None
    if found is None:
        raise AppError("not_done")
    text = render(
        found, form, language=job.detected_language, duration_seconds=job.duration_seconds
    )
    response = Response(text, content_type=MEDIA_TYPES[form])
    response.headers["Content-Disposition"] = attachment(stem(job.display_name) + f".{form}")
    return response


@blueprint.get("/jobs")
@allow(reads)
def listing() -> Response:
    """A page of jobs, newest first; `next` is the cursor of the page after it."""
    page = services().queue.page(
        _filter(),
        before=_whole_number("cursor", None),
        limit=min(_whole_number("limit", _DEFAULT_PAGE) or _DEFAULT_PAGE, MAX_PAGE),
    )
    jobs = [{"name": job.display_name, **_facts(job)} for job in page.jobs]
    return jsonify({"jobs": jobs, "next": page.next_cursor})


@blueprint.post("/jobs/<job_id>/revive")
@allow(manages)
def revive(job_id: str) -> Response:
    """Send a failed or dead job back to the state it ended in."""
    return jsonify(_describe(actions.revive(job_id)))


@blueprint.post("/jobs/<job_id>/cancel")
@allow(knows_id)
def cancel(job_id: str) -> Response:
    """Stop a job that waits or runs."""
    return jsonify(_describe(actions.cancel(job_id)))


@blueprint.delete("/jobs/<job_id>")
@allow(manages)
def delete(job_id: str) -> Response:
    """Put a job into the bin: the job as it lies there, cancelled when it was not over."""
    return jsonify(_describe(actions.delete(job_id)))


@blueprint.post("/jobs/<job_id>/undelete")
@allow(manages)
def undelete(job_id: str) -> Response:
    """Take a job out of the bin, as it was when it went in."""
    return jsonify(_describe(actions.undelete(job_id)))


@blueprint.post("/jobs/<job_id>/send-again")
@allow(manages)
def send_again(job_id: str) -> Response:
    """Send the answer to a job's chat again, when it may not have arrived."""
    return jsonify(_describe(told.send_again(job_id)))


@blueprint.get("/steps")
@allow(reads)
def steps() -> Response:
    """The steps, and since when the owner has paused them."""
    paused = services().queue.paused_steps()
    return jsonify({"steps": [_step(step, paused.get(step)) for step in Step]})


@blueprint.post("/steps/<step>/pause")
@allow(manages)
def pause(step: str) -> Response:
    """Let nothing new into a step; what runs goes on. A paused one stays as it is."""
    chosen = actions.pause(step)
    return jsonify(_step(chosen, services().queue.paused_steps().get(chosen)))


@blueprint.post("/steps/<step>/resume")
@allow(manages)
def resume(step: str) -> Response:
    """Let jobs into a step again. One that was not paused stays as it is."""
    chosen = actions.resume(step)
    return jsonify(_step(chosen, services().queue.paused_steps().get(chosen)))


def _recording() -> Reception:
    if request.mimetype != "multipart/form-data":
        # Whatever its type says, the body is the recording: curl calls it a form by default.
        return received.body(request.args.get("name", ""))
    found = received.files("file")
    if not found:
        raise AppError("no_file")
    return found[0]


def _language() -> str | None:
    of_form = request.form.get("language") if request.mimetype == "multipart/form-data" else None
    return of_form or request.args.get("language") or None


def _idempotency_key() -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
        raise AppError("bad_request")
    return key


def _filter() -> JobFilter:
    words = [word for word in ",".join(request.args.getlist("state")).split(",") if word]
    if words == [_BIN]:
        return JobFilter(is_deleted=True)
    try:
        return JobFilter(states=tuple(State(word) for word in words))
    except ValueError:
        raise AppError("bad_request") from None


def _whole_number(name: str, otherwise: int | None) -> int | None:
    text = request.args.get(name)
    if text is None:
        return otherwise
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise AppError("bad_request")
    return int(text)


def _describe(job: Job) -> Mapping[str, Any]:
    """Every field of I08, all of them always there; null where there is nothing to tell yet."""
    at = now()
    how = standing(job, at)
    transcript = services().queue.transcript(job.id) if job.state is State.DONE else None
    waiting = how.waiting_for
    return {
        **_facts(job),
        "stage": how.stage,
        "progress": how.progress,
        "position": how.position,
        "waiting_for": ({"code": waiting.code, "sentence": waiting.sentence} if waiting else None),
        "next_try": _time(how.next_try),
        "text": transcript.text if transcript else None,
        "segments": (
            [
                {"start": part.start, "end": part.end, "text": part.text, "speaker": part.speaker}
                for part in transcript.segments
            ]
            if transcript
            else None
        ),
        "reply": _reply(told.newest(job.id)),
    }


def _facts(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "state": job.state.value,
        "source": job.source.value,
        "created": _time(job.created),
        "updated": _time(job.updated),
        "deleted": _time(job.deleted),
        "attempts": job.attempts,
        "progress": 1.0 if job.state is State.DONE else job.progress,
        "error": _error(job),
        "language": job.detected_language or job.language,
        "duration": job.duration_seconds,
        "links": _links(job),
    }


def _reply(reply: Reply | None) -> Mapping[str, str | None] | None:
    if reply is None:
        return None
    return {"state": reply.state.value, "reason": reply.reason.value if reply.reason else None}


def _step(step: Step, paused: datetime | None) -> Mapping[str, str | None]:
    return {"step": step.value, "paused": _time(paused)}


def _error(job: Job) -> Mapping[str, str] | None:
    if not job.error_code or job.state is State.DONE:
        return None
    return {"code": job.error_code, "message": error_sentence(job.error_code)}


def _links(job: Job) -> Mapping[str, str | None]:
    is_done = job.state is State.DONE
    return {
        "self": url_for("api.show", job_id=job.id),
        "page": url_for("jobs.page", job_id=job.id),
        "audio": url_for("files.audio", job_id=job.id) if job.playable_file else None,
        **{
            form: url_for("api.transcript", job_id=job.id, form=form) if is_done else None
            for form in MEDIA_TYPES
        },
    }


def _time(moment: datetime | None) -> str | None:
    return to_rfc3339(moment) if moment else None
