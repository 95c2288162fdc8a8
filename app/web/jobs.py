"""The pages of jobs: the owner's list by state, and the page of one job for who knows its id."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import Blueprint, make_response, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as BaseResponse

from app.errors import AppError
from app.job import ACTIVE, Job, State, Step
from app.queue.port import JobFilter
from app.web import job_view, wording
from app.web.access import allow, knows_id, owner
from app.web.job_view import Row, binned_of, rows_of, surroundings, view_of
from app.web.services import services
from app.web.wording import Surroundings

PAGE_LENGTH = 50
BIN = "bin"
_BUSY_SECONDS = 3
_QUIET_SECONDS = 15

blueprint = Blueprint("jobs", __name__)


@dataclass(frozen=True)
class Tab:
    """A state to choose, None for all, with its name, count and address.

    The bin has no count: counting it would cost more with each job in it.
    """

    state: str | None
    name: str
    count: int | None
    url: str


@dataclass(frozen=True)
class Switch:
    """A step that the owner can pause or resume; paused is since when."""

    step: Step
    name: str
    paused: datetime | None


@blueprint.get("/jobs")
@allow(owner)
def listing() -> str:
    """Jobs newest first, by state or in the bin; the address keeps the filter and the place."""
    state, before = _state(), _whole_number("before")
    page = services().queue.page(_filter(state), before=before, limit=PAGE_LENGTH)
    around = surroundings()
    is_bin = state == BIN
    rows = [] if is_bin else rows_of(page.jobs, around)
    return render_template(
        "jobs/list.html",
        rows=rows,
        binned_rows=[binned_of(job, around) for job in page.jobs] if is_bin else [],
        binned=job_view.binned(request.args.get("binned", "")),
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
    found = {job_id: services().queue.find(job_id) for job_id in list(watched)[:PAGE_LENGTH]}
    rows = rows_of([job for job in found.values() if job], around)
    gone = [job_id for job_id, job in found.items() if job is None]
    moved = [row for row in rows if row.version != watched[row.job.id]]
    fresh: Sequence[Job] = ()
    if "first" in request.args:
        top = services().queue.page(_filter(state), before=None, limit=PAGE_LENGTH)
        fresh = [job for job in top.jobs if job.seq > newest]
    head = _head(state, around)
    if not (moved or gone or fresh) and request.args.get("head") == head["head_version"]:
        return make_response("", 204)
    added = rows_of(fresh, around, is_fresh=True)
    return make_response(
        render_template(
            "jobs/_changes.html",
            moved=moved,
            gone=gone,
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
def page(job_id: str) -> BaseResponse:
    """One job: what is happening, then the text and the sound.

    Of one in the bin the owner is told so, and the way out of it.
    """
    if binned := _binned_instead(job_id):
        return make_response(render_template("jobs/binned.html", binned=binned), 404)
    view = view_of(services().queue.get(job_id))
    is_same = "same" in request.args
    return make_response(render_template("jobs/page.html", view=view, is_same=is_same))


@blueprint.get("/jobs/<job_id>/live")
@allow(knows_id)
def live(job_id: str) -> BaseResponse:
    """What changed on an open page of a job; 204 when nothing did."""
    if binned := _binned_instead(job_id):
        return make_response(render_template("jobs/_binned.html", binned=binned), 404)
    view = view_of(services().queue.get(job_id))
    is_same_stage = request.args.get("stage") == view.stage
    if is_same_stage and request.args.get("version") == view.version:
        return make_response("", 204)
    return make_response(
        render_template("jobs/_live.html", view=view, is_new_stage=not is_same_stage)
    )


def _binned_instead(job_id: str) -> job_view.Binned | None:
    return None if services().queue.find(job_id) else job_view.binned(job_id)


def _head(state: str | None, around: Surroundings) -> dict[str, Any]:
    """The tabs with their counts, whether anything moves at all, and what the owner has paused."""
    counts = services().queue.counts()
    tabs = [Tab(None, gettext("All"), sum(counts.values()), _url(None))]
    tabs += [
        Tab(name, gettext(words), counts.get(name, 0), _url(name))
        for name, words in wording.STATE_NAMES.items()
    ]
    tabs.append(Tab(BIN, gettext("Bin"), None, _url(BIN)))
    switches = [
        Switch(step, gettext(name), around.paused.get(step))
        for step, name in wording.STEP_NAMES.items()
    ]
    is_stuck = around.workers == 0 and any(counts.get(name) for name in ACTIVE)
    return {
        "tabs": tabs,
        "state": state,
        "is_stuck": is_stuck,
        "running_steps": [switch for switch in switches if not switch.paused],
        "paused_steps": [switch for switch in switches if switch.paused],
        "head_version": ".".join(
            [*(str(tab.count or 0) for tab in tabs), str(int(is_stuck)), *sorted(around.paused)]
        ),
    }


def _poll(state: str | None, rows: Sequence[Row], *, newest: int, is_first: bool) -> dict[str, Any]:
    is_busy = any(row.is_active for row in rows)
    asked = {"state": state, "newest": newest or None, "first": "1" if is_first else None}
    return {"poll": asked, "poll_seconds": _BUSY_SECONDS if is_busy else _QUIET_SECONDS}


def _filter(state: str | None) -> JobFilter:
    if state == BIN:
        return JobFilter(is_deleted=True)
    return JobFilter(states=(State(state),) if state else ())


def _newest(jobs: Sequence[Job]) -> int:
    return jobs[0].seq if jobs else 0


def _url(state: str | None, before: int | None = None) -> str:
    return url_for("jobs.listing", state=state, before=before)


def _state() -> str | None:
    word = request.args.get("state")
    if word and word not in (*State, BIN):
        raise AppError("bad_request")
    return word or None


def _whole_number(name: str) -> int | None:
    text = request.args.get(name)
    if text is None:
        return None
    if not re.fullmatch("[0-9]{1,18}", text):
        raise AppError("bad_request")
    return int(text)
