"""The upload page: by script one recording a request, by a plain form all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, jsonify, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.clock import new_token
from app.errors import AppError
from app.intake import clean_name
from app.job import Job, Source
from app.languages import SPOKEN
from app.queue.port import Enqueued
from app.web import errors, identity, job_view, received
from app.web.access import allow, anyone, hands_in, knows_id
from app.web.i18n import language_name, lasting
from app.web.received import Reception
from app.web.services import now, services

_SHOWN_AT_ONCE = 50

blueprint = Blueprint("upload", __name__)


@dataclass(frozen=True)
class Outcome:
    """What became of one file of the form."""

    name: str
    job: Job | None
    fault: str = ""
    status: int = 200
    is_old: bool = False


@blueprint.get("/")
@allow(anyone)
def page() -> BaseResponse:
    """The form, and below it what was just handed in."""
    return form_page([Outcome(job.display_name, job) for job in _handed_in()])


@blueprint.post("/")
@allow(hands_in)
def hand_in() -> BaseResponse:
    """Take the form's files; by script it is one file, and the answer is JSON."""
    files = received.files("file")
    if errors.wants_json():
        if not files:
            raise AppError("no_file")
        return told(_accept(files[0], 0))
    if not files:
        error = AppError("no_file")
        return make_response(form_page([], errors.sentence(error)), error.kind.status)
    return _shown([_try(file, number) for number, file in enumerate(files)])


@blueprint.get("/jobs/<job_id>/line")
@allow(knows_id)
def line(job_id: str) -> str:
    """One line on what a job is doing; it asks again until the job has ended."""
    job = services().queue.get(job_id)
    status, fault = job_view.status_of(job), job_view.fault_of(job)
    return render_template("upload/_line.html", job=job, status=status, fault=fault)


def _accept(file: Reception, number: int) -> Enqueued:
    draft = file.take()
    nonce = request.form.get("nonce", "")[:64]
    place = request.form.get("number", "")[:8] or str(number)
    # Pressing twice must give one job (CU06). Size and name are in the key because the browser's
    # way back brings the same form again, and then another file is no mistake.
    key = f"form:{nonce}:{place}:{draft.size}:{file.name}" if nonce else None
    return services().intake.accept(
        draft,
        source=Source.WEB,
        display_name=file.name,
        language=request.form.get("language") or None,
        sender=identity.sender(),
        idempotency_key=key,
        reuse_same_bytes=True,
        now=now(),
    )


def _try(file: Reception, number: int) -> Outcome:
    try:
        done = _accept(file, number)
    except AppError as error:
        return Outcome(clean_name(file.name), None, errors.sentence(error), error.kind.status)
    return Outcome(done.job.display_name, done.job, is_old=done.same_bytes)


def told(done: Enqueued) -> BaseResponse:
    """What a script is told of a recording that was taken."""
    answer = jsonify(
        id=done.job.id,
        name=done.job.display_name,
        page=url_for("jobs.page", job_id=done.job.id),
        line=url_for("upload.line", job_id=done.job.id),
        again=url_for("verbs.again", job_id=done.job.id),
        same_bytes=done.same_bytes,
    )
    return make_response(answer, 201 if done.created else 200)


def _shown(outcomes: Sequence[Outcome]) -> BaseResponse:
    first = outcomes[0]
    if len(outcomes) == 1 and first.job:
        again = "1" if first.is_old else None
        return redirect(url_for("jobs.page", job_id=first.job.id, same=again), 303)
    if all(outcome.job and not outcome.is_old for outcome in outcomes):
        ids = [outcome.job.id for outcome in outcomes if outcome.job]
        return redirect(url_for("upload.page", job=ids), 303)
    worst = max(outcome.status for outcome in outcomes)
    return make_response(form_page(outcomes), worst)


def form_page(
    outcomes: Sequence[Outcome], fault: str = "", *, by_link: str = "", new_link: str = ""
) -> BaseResponse:
    """The page with the form; by_link is the address of a link that one recording comes by.

    new_link is a link that the owner has just made, to be shown this once.
    """
    settings = services().settings
    may_hand_in = bool(by_link) or settings.intake_is_open or identity.session() is not None
    return make_response(
        render_template(
            "upload/page.html",
            outcomes=outcomes,
            statuses={item.job.id: job_view.status_of(item.job) for item in outcomes if item.job},
            faults={item.job.id: job_view.fault_of(item.job) for item in outcomes if item.job},
            fault=fault,
            may_hand_in=may_hand_in,
            by_link=by_link,
            new_link=new_link,
            nonce=new_token(),
            max_bytes=int(settings.intake.max_size),
            max_length=lasting(settings.intake.max_duration, "long"),
            choices=sorted((language_name(code), code) for code in SPOKEN),
            chosen=request.form.get("language", ""),
            no_worker=services().workers_alive() == 0,
        )
    )


def _handed_in() -> list[Job]:
    found = []
    for job_id in request.args.getlist("job")[:_SHOWN_AT_ONCE]:
        try:
            found.append(services().queue.get(job_id))
        except AppError:
            continue
    return found
