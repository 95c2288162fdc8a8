"""A job that failed says what went wrong, on its page and to programs (CQ13)."""

import errno
import html
import json
import os
import re
import sqlite3
from collections.abc import Callable

import pytest

from app.assembly import House
from app.clock import to_rfc3339
from app.errors import KINDS, AppError
from app.job import Job, State, Step
from app.queue.port import StepResult
from tests.web.conftest import Clock
from tests.web.hands import claim, hand_in
from tests.web.visitor import Visitor
from worker.loop import Lane, Limits, Loop
from worker.work import Work

SECRETS = ("hunter2", "/data/storage", "5f1c8f2e-0000-4000-8000-000000000000.ogg", "Traceback")
PATH = f"{SECRETS[1]}/files/abc/{SECRETS[2]}"
PASSWORD = f"password={SECRETS[0]}"

FAULTS: dict[str, Exception] = {
    "not_media": AppError("not_media", "container unknown"),
    "no_audio_track": AppError("no_audio_track"),
    "truncated": AppError("truncated", "ends at 61.5 s"),
    "no_audio_decoded": AppError("no_audio_decoded"),
    "too_long": AppError("too_long", "7 h"),
    "playlist": AppError("playlist"),
    "unsafe_media": AppError("unsafe_media", "CPU time"),
    "recognizer_refused": AppError("recognizer_refused"),
    "source_missing": AppError("source_missing", "file record abc"),
    "convert_timeout": AppError("convert_timeout", "no progress"),
    "convert_crashed": AppError("convert_crashed", "exit=-9"),
    "engine_crashed": AppError("engine_crashed", "ended by SIGSEGV"),
    "engine_unavailable": AppError("engine_unavailable"),
    "engine_silent": AppError("engine_silent"),
    "storage_failed": AppError("storage_failed", "file record abc: EIO"),
    "disk_full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), PATH),
    "internal": RuntimeError(f"{PASSWORD} for {PATH}"),
    "database_damaged": AppError("database_damaged"),
}
"""Each fault that a step may meet, as it meets it: ours with a code, the system's with its path."""


def meet(house: House, clock: Clock, fault: Exception) -> Job:
    """A job whose only step so far has met a fault, in the real loop."""
    job = hand_in(house, clock())
    _turn(house, clock, fault)
    return house.queue.get(job.id)


def _turn(house: House, clock: Clock, fault: Exception) -> None:
    class Convert:
        def run(self, work: Work) -> StepResult:
            try:
                raise sqlite3.OperationalError(PASSWORD)
            except sqlite3.OperationalError:
                raise fault from None

    loop = Loop(
        queue=house.queue,
        storage=house.storage,
        worker="worker-test",
        scratch=house.scratch,
        limits=Limits(max_attempts=2, retry_cap_seconds=300),
        now=clock,
        poll_seconds=1,
    )
    loop.turn(Lane(State.CREATED, Step.CONVERT, Convert(), 3600))


def words(page: str) -> str:
    """A page without its markup; a command in a sentence stands in marks of its own there."""
    plain = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))
    return re.sub(r"\s+([.,:;])", r"\1", plain)


def sentence_of(code: str) -> str:
    return words(KINDS[code].sentence.replace("`", " "))


def told(visitor: Visitor, job: Job) -> tuple[str, dict[str, object]]:
    """What the page says in plain words, and what programs are told; neither holds a secret."""
    page = visitor.get(f"/jobs/{job.id}").text
    answer = visitor.get(f"/api/jobs/{job.id}").text
    for secret in SECRETS:
        assert secret not in page
        assert secret not in answer
    return words(page), json.loads(answer)


def test_cq13_the_faults_have_a_sentence_each() -> None:
    assert len(FAULTS) >= 12
    assert len({KINDS[code].sentence for code in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("code", FAULTS)
def test_cq13_a_fault_is_told_in_its_own_words_and_in_no_others(
    signed_in: Visitor, house: House, clock: Clock, code: str
) -> None:
    job = meet(house, clock, FAULTS[code])
    page, answer = told(signed_in, job)
    assert job.error_code == code
    assert answer["error"] == {"code": code, "message": KINDS[code].sentence}
    assert sentence_of(code) in page
    assert not [other for other in FAULTS if other != code and sentence_of(other) in page]
    assert "Attempt 1 to convert failed" in page or "Ended without a text" in page
    if job.error_text:
        assert job.error_text in page, "the machine's words stand behind a fold"


@pytest.mark.parametrize("code", [code for code in FAULTS if not KINDS[code].permanent])
def test_cq13_a_fault_that_is_tried_again_says_when_and_then_that_it_gave_up(
    signed_in: Visitor, house: House, clock: Clock, code: str
) -> None:
    job = meet(house, clock, FAULTS[code])
    assert job.delay_time is not None
    page, answer = told(signed_in, job)
    assert answer["next_try"] == to_rfc3339(job.delay_time)
    assert answer["attempts"] == 1
    assert "Next try" in page or "next try" in page
    for _ in range(2):
        clock.go_on(400)
        _turn(house, clock, FAULTS[code])
    page, answer = told(signed_in, job)
    assert (answer["state"], answer["next_try"]) == ("dead", None)
    assert answer["error"] == {"code": code, "message": KINDS[code].sentence}
    assert sentence_of(code) in page
    assert "Gave up: all attempts are spent" in page


def by_lost_workers(house: House, clock: Clock) -> None:
    claim(house, State.CREATED, clock())
    house.queue.release_lost(lambda name: True, clock())


def by_ended_leases(house: House, clock: Clock) -> None:
    claim(house, State.CREATED, clock())
    clock.go_on(3600)


@pytest.mark.parametrize(
    ("way", "line"),
    [
        (by_lost_workers, "Given back: the worker was gone"),
        (by_ended_leases, "Given back: the worker did not finish in time"),
    ],
)
def test_cq01_cq13_a_lost_try_stands_in_the_history(
    signed_in: Visitor, house: House, clock: Clock, way: Callable[[House, Clock], None], line: str
) -> None:
    """No step was there to say a word: the one who takes the job over says it."""
    job = hand_in(house, clock())
    for _ in range(2):
        way(house, clock)
    house.queue.claim(
        State.CREATED, worker="worker-next", lease_seconds=3600, max_attempts=2, now=clock()
    )
    page, answer = told(signed_in, house.queue.get(job.id))
    code = house.queue.get(job.id).error_code or ""
    assert answer["state"] == "dead"
    assert answer["error"] == {"code": code, "message": KINDS[code].sentence}
    assert sentence_of(code) in page
    assert page.count(line) == 2
