"""The verbs of the pages: on a job, and pausing a step; each answers a script and a plain form.

A script gets back the row it changed. A plain form comes back to the page it was on, and one that
came too late is shown the job as it is, with the reason.
"""

from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError
from app.job import Job
from app.revival import ends_alike
from app.web import actions, errors, htmx, identity, job_view, wording
from app.web.access import allow, hands_in, knows_id, owner
from app.web.next_page import local_or
from app.web.services import now, services

blueprint = Blueprint("verbs", __name__)


def hands_in_again() -> None:
    """Whoever may hand in; no recording comes with the request, so it is not an intake."""
    hands_in()


@blueprint.post("/jobs/<job_id>/revive")
@allow(owner)
def revive(job_id: str) -> BaseResponse:
    """Set a failed or dead job going again."""
    return _act("revive", job_id)


@blueprint.post("/jobs/<job_id>/cancel")
@allow(knows_id)
def cancel(job_id: str) -> BaseResponse:
    """Stop a job that waits or runs."""
    return _act("cancel", job_id)


@blueprint.post("/jobs/<job_id>/delete")
@allow(owner)
def delete(job_id: str) -> BaseResponse:
    """Put a job into the bin; the answer offers to take it out again."""
    return _act("delete", job_id)


@blueprint.post("/jobs/<job_id>/undelete")
@allow(owner)
def undelete(job_id: str) -> BaseResponse:
    """Take a job out of the bin."""
    return _act("undelete", job_id)


@blueprint.post("/jobs/<job_id>/send-again")
@allow(owner)
def send_again(job_id: str) -> BaseResponse:
    """Send the answer to a job's chat again, when it may not have arrived."""
    return _act("send_again", job_id)


@blueprint.post("/jobs/<job_id>/again")
@allow(hands_in_again)
def again(job_id: str) -> BaseResponse:
    """Make a new job of the same recording, and show it."""
    job = services().intake.again(job_id, identity.sender(), now())
    return redirect(url_for("jobs.page", job_id=job.id), 303)


@blueprint.post("/steps/<step>/pause")
@allow(owner)
def pause(step: str) -> BaseResponse:
    """Let nothing new into a step."""
    actions.pause(step)
    return redirect(_next(url_for("jobs.listing")), 303)


@blueprint.post("/steps/<step>/resume")
@allow(owner)
def resume(step: str) -> BaseResponse:
    """Let jobs into a step again."""
    actions.resume(step)
    return redirect(_next(url_for("jobs.listing")), 303)


def _act(verb: str, job_id: str) -> BaseResponse:
    before = services().queue.find(job_id)
    try:
        job = actions.VERBS[verb](job_id)
    except AppError as error:
        return _refused(verb, job_id, error)
    if job.deleted:
        return _in_bin(job_id, 200)
    is_vain = verb == "revive" and before is not None and ends_alike(before)
    return _there(job, wording.vain() if is_vain else "", 200)


def _refused(verb: str, job_id: str, error: AppError) -> BaseResponse:
    """The page was older than the job: its worker, or another page of it, was faster."""
    if error.code == "not_found":
        if job_view.binned(job_id):
            return _in_bin(job_id, 200 if verb == "delete" else 409)
        if htmx.is_htmx() and identity.session():
            return _row("jobs/_gone.html", 404, job_id=job_id, binned=None)
        raise error
    job = services().queue.get(job_id)
    told = wording.refusal(verb, job) if error.code == "wrong_state" else errors.sentence(error)
    return _there(job, told, error.kind.status)


def _there(job: Job, note: str, status: int) -> BaseResponse:
    """The job as it is now, with what is to be said of it."""
    if htmx.is_htmx():
        (row,) = job_view.rows_of([job], job_view.surroundings())
        return _row("jobs/_row.html", status, row=row, note=note, acted=True)
    if status == 200:
        return redirect(_next(url_for("jobs.page", job_id=job.id)), 303)
    page = render_template("jobs/page.html", view=job_view.view_of(job), note=note)
    return make_response(page, status)


def _in_bin(job_id: str, status: int) -> BaseResponse:
    """That the job lies in the bin, and the way out of it."""
    if htmx.is_htmx():
        return _row("jobs/_gone.html", status, job_id=job_id, binned=job_view.binned(job_id))
    address = urlsplit(_next(url_for("jobs.listing")))
    asked = [pair for pair in parse_qsl(address.query) if pair[0] != "binned"]
    query = urlencode([*asked, ("binned", job_id)])
    return redirect(f"{address.path}?{query}", 303)


def _row(template: str, status: int, **values: object) -> BaseResponse:
    return htmx.announce(make_response(render_template(template, **values), status), "acted")


def _next(otherwise: str) -> str:
    return local_or(request.form.get("next"), otherwise)
