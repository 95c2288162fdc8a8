"""The pages of jobs: the owner's list by state, and the page of one job for who knows its id."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError
from app.job import ACTIVE, Job, State
from app.queue.port import JobFilter
from app.web import actions, errors, htmx, identity, wording
from app.web.access import allow, hands_in, knows_id, owner
from app.web.job_view import Row, row_of, surroundings, view_of
from app.web.next_page import local_or
from app.web.services import now, services
from app.web.wording import Surroundings

PAGE_LENGTH = 50
_BUSY_SECONDS = 3
_QUIET_SECONDS = 15

blueprint = Blueprint("jobs", __name__)


@dataclass(frozen=True)
class Tab:
    """A state to choose, None for all, with its name, count and address."""

    state: State | None
    name: str
    count: int
    url: str


def hands_in_again() -> None:
    """Whoever may hand in; no recording comes with the request, so it is not an intake."""
    hands_in()


@blueprint.get("/jobs")
@allow(owner)
def listing() -> str:
    """Jobs newest first, by state; the address keeps the filter and the place."""
    state, before = _state(), _whole_number("before")
    page = services().queue.page(_filter(state), before=before, limit=PAGE_LENGTH)
    around = surroundings()
    rows = [row_of(job, around) for job in page.jobs]
    return render_template(
        "jobs/list.html",
        rows=rows,
        list_url=_url(state, before),
        older=_url(state, page.next_cursor) if page.next_cursor else None,
        newest_page=_url(state) if before else None,
        **_head(state, around),
        **_poll(state, rows, newest=0 if before else _newest(page.jobs), is_first=not before),
    )


@blueprint.get("/jobs/changes")
@allow(owner)
def changes() -> BaseResponse:
    """What changed in an open list, row by row, so that nothing else on the page moves.

    The page says which rows may change and how they look; 204 when they look so still.
    """
    state, newest = _state(), _whole_number("newest") or 0
    around = surroundings()
    watched = dict(mark.partition(".")[::2] for mark in request.args.getlist("watch"))
    rows = [row_of(job, around) for job in _standing(list(watched)[:PAGE_LENGTH])]
    moved = [row for row in rows if row.version != watched[row.job.id]]
    fresh: Sequence[Job] = ()
    if "first" in request.args:
        top = services().queue.page(_filter(state), before=None, limit=PAGE_LENGTH)
        fresh = [job for job in top.jobs if job.seq > newest]
    head = _head(state, around)
    if not moved and not fresh and request.args.get("head") == head["head_version"]:
        return make_response("", 204)
    added = [row_of(job, around, is_fresh=True) for job in fresh]
    return make_response(
        render_template(
            "jobs/_changes.html",
            moved=moved,
            fresh=added,
            **head,
            **_poll(
                state,
                [*rows, *added],
                newest=max([newest, *(job.seq for job in fresh)]),
                is_first="first" in request.args,
            ),
        )
    )


@blueprint.get("/jobs/<job_id>")
@allow(knows_id)
def page(job_id: str) -> str:
    """One job: what is happening, then the text and the sound."""
    job = services().queue.get(job_id)
    return render_template("jobs/page.html", view=view_of(job), is_same="same" in request.args)


@blueprint.get("/jobs/<job_id>/live")
@allow(knows_id)
def live(job_id: str) -> BaseResponse:
    """What changed on an open page of a job; 204 when nothing did."""
    view = view_of(services().queue.get(job_id))
    is_same_stage = request.args.get("stage") == view.stage
    if is_same_stage and request.args.get("version") == view.version:
        return make_response("", 204)
    return make_response(
        render_template("jobs/_live.html", view=view, is_new_stage=not is_same_stage)
    )


@blueprint.post("/jobs/<job_id>/revive")
@allow(owner)
def revive(job_id: str) -> BaseResponse:
    """Set a failed or dead job going again."""
    return _act(job_id, lambda: actions.revive(job_id))


@blueprint.post("/jobs/<job_id>/cancel")
@allow(knows_id)
def cancel(job_id: str) -> BaseResponse:
    """Stop a job that waits or runs."""
    return _act(job_id, lambda: services().queue.cancel(job_id, now()))


@blueprint.post("/jobs/<job_id>/again")
@allow(hands_in_again)
def again(job_id: str) -> BaseResponse:
    """Make a new job of the same recording, and show it."""
    job = services().intake.again(job_id, identity.sender(), now())
    return redirect(url_for("jobs.page", job_id=job.id), 303)


def _act(job_id: str, verb: Callable[[], Job]) -> BaseResponse:
    """Do something to a job; a script gets its row back, a plain form its page."""
    if not htmx.is_htmx():
        verb()
        return redirect(
            local_or(request.form.get("next"), url_for("jobs.page", job_id=job_id)), 303
        )
    note, status = "", 200
    try:
        verb()
    except AppError as error:
        if error.code == "not_found":
            raise
        note, status = errors.sentence(error), error.kind.status
    row = row_of(services().queue.get(job_id), surroundings())
    answer = render_template("jobs/_row.html", row=row, note=note, acted=True)
    return htmx.announce(make_response(answer, status), "acted")


def _head(state: State | None, around: Surroundings) -> dict[str, Any]:
    """The tabs with their counts, and whether anything moves at all."""
    counts = services().queue.counts()
    tabs = [Tab(None, gettext("All"), sum(counts.values()), _url(None))]
    tabs += [
        Tab(name, gettext(words), counts.get(name, 0), _url(name))
        for name, words in wording.STATE_NAMES.items()
    ]
    is_stuck = around.workers == 0 and any(counts.get(name) for name in ACTIVE)
    return {
        "tabs": tabs,
        "state": state,
        "is_stuck": is_stuck,
        "head_version": ".".join(str(tab.count) for tab in tabs) + f".{int(is_stuck)}",
    }


def _poll(
    state: State | None, rows: Sequence[Row], *, newest: int, is_first: bool
) -> dict[str, Any]:
    is_busy = any(row.is_active for row in rows)
    asked = {"state": state, "newest": newest or None, "first": "1" if is_first else None}
    return {"poll": asked, "poll_seconds": _BUSY_SECONDS if is_busy else _QUIET_SECONDS}


def _standing(job_ids: Sequence[str]) -> list[Job]:
    found = []
    for job_id in job_ids:
        with suppress(AppError):
            found.append(services().queue.get(job_id))
    return found


def _filter(state: State | None) -> JobFilter:
    return JobFilter(states=(state,) if state else ())


def _newest(jobs: Sequence[Job]) -> int:
    return jobs[0].seq if jobs else 0


def _url(state: State | None, before: int | None = None) -> str:
    return url_for("jobs.listing", state=state, before=before)


def _state() -> State | None:
    word = request.args.get("state")
    try:
        return State(word) if word else None
    except ValueError:
        raise AppError("bad_request") from None


def _whole_number(name: str) -> int | None:
    text = request.args.get(name)
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise AppError("bad_request")
    return int(text)
