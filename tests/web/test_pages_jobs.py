"""The owner's list: tabs, pages, reasons, and actions that work with and without scripts."""

import re
from datetime import timedelta

import pytest

from app.assembly import House
from app.errors import AppError
from app.job import Job, State
from app.queue.port import Buried, Started
from app.web.jobs import PAGE_LENGTH
from tests.web.conftest import Clock
from tests.web.hands import claim, convert, fail, finish, hand_in, sound
from tests.web.visitor import HTMX, Visitor


def bury(house: House, clock: Clock) -> Job:
    """A job whose only attempt failed without a verdict."""
    job = hand_in(house, clock(), sound(0.3), "dead.wav")
    held = claim(house, State.CREATED, clock())
    assert house.queue.retry(held, AppError("convert_crashed", "signal 11"), 1, clock())
    clock.go_on(2)
    buried = house.queue.claim(
        State.CREATED, worker="worker-test", lease_seconds=60, max_attempts=1, now=clock()
    )
    assert isinstance(buried, Buried)
    return job


def poll(page: str) -> str:
    """The address that an open list asks for changes, with what the script adds to it."""
    found = re.search(r'hx-get="(/jobs/changes[^"]*)"', page)
    assert found
    marks = re.findall(r'name="watch" value="([^"]+)"', page)
    return found[1].replace("&amp;", "&") + "".join(f"&watch={mark}" for mark in marks)


def ids(page: str) -> list[str]:
    return re.findall(r'<tr id="job-([a-z0-9]{15})"', page)


def test_s08_the_list_is_the_owners(visitor: Visitor) -> None:
    for path in ("/jobs", "/jobs/changes"):
        assert visitor.get(path).location.startswith("/login")


def test_tabs_tell_how_many_are_in_each_state(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    hand_in(house, clock())
    finish(house, clock())
    hand_in(house, clock(), sound(0.2))
    page = signed_in.get("/jobs").text
    counts = dict(re.findall(r'id="tab-(\w+)".*?class="n">(\d+)<', page, re.DOTALL))
    assert counts == {
        "all": "2",
        "created": "1",
        "converted": "0",
        "transcribe": "0",
        "done": "1",
        "failed": "0",
        "dead": "0",
    }
    assert re.search(r'id="tab-all"[^>]*aria-current="page"', page)
    done = signed_in.get("/jobs?state=done").text
    assert len(ids(done)) == 1
    assert re.search(r'id="tab-done"[^>]*aria-current="page"', done)


def test_long_lists_come_in_pages_by_a_cursor(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    handed_in = [
        hand_in(house, clock(), sound() + bytes([number])).id for number in range(PAGE_LENGTH + 3)
    ]
    newest_first = handed_in[::-1]
    first = signed_in.get("/jobs").text
    assert ids(first) == newest_first[:PAGE_LENGTH]
    older = re.search(r'href="(/jobs\?before=\d+)">Older', first)
    assert older
    second = signed_in.get(older[1]).text
    assert ids(second) == newest_first[PAGE_LENGTH:]
    assert 'href="/jobs">Newest' in second


def test_a_dead_job_is_told_beside_jobs_with_its_reason_and_the_way_out(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = bury(house, clock)
    page = signed_in.get("/jobs?state=dead").text
    assert "(1 dead)" in page
    assert "gave up after 1 attempt · The converter stopped unexpectedly." in page
    assert f'action="/jobs/{job.id}/revive"' in page


@pytest.mark.parametrize("state", ["", *State])
def test_an_empty_list_says_what_would_fill_it(signed_in: Visitor, state: str) -> None:
    page = signed_in.get(f"/jobs?state={state}").text
    assert 'class="empty"' in page


def test_p15_revive_by_a_plain_form_comes_back_to_the_list(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = bury(house, clock)
    answer = signed_in.post(f"/jobs/{job.id}/revive", {"next": "/jobs?state=dead"})
    assert (answer.status_code, answer.location) == (303, "/jobs?state=dead")
    assert house.queue.get(job.id).state is State.CREATED
    assert house.queue.get(job.id).attempts == 0


def test_p15_revive_by_script_answers_with_the_row(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = bury(house, clock)
    answer = signed_in.post(f"/jobs/{job.id}/revive", headers=HTMX)
    assert answer.status_code == 200
    assert answer.text.count("<tr") == 1
    assert "Waiting" in answer.text
    assert answer.headers["HX-Trigger-After-Settle"] == "acted"


def test_a_second_revive_by_script_is_409_with_the_row_as_it_is(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = bury(house, clock)
    house.queue.revive(job.id, clock())
    answer = signed_in.post(f"/jobs/{job.id}/revive", headers=HTMX)
    assert answer.status_code == 409
    assert "Not revived: it is at work again already." in answer.text
    assert f'id="job-{job.id}"' in answer.text


def test_revive_without_its_file_says_so(signed_in: Visitor, house: House, clock: Clock) -> None:
    job = bury(house, clock)
    house.storage.delete(house.queue.file(job.source_file))
    assert "There is nothing" not in signed_in.get(f"/jobs/{job.id}").text
    answer = signed_in.post(f"/jobs/{job.id}/revive", headers=HTMX)
    assert answer.status_code == 409
    assert "file is gone" in answer.text
    assert house.queue.get(job.id).state is State.DEAD


def test_only_the_owner_revives(visitor: Visitor, house: House, clock: Clock) -> None:
    job = bury(house, clock)
    assert visitor.post(f"/jobs/{job.id}/revive").location.startswith("/login")
    assert house.queue.get(job.id).state is State.DEAD


def test_an_action_leads_to_no_other_site(signed_in: Visitor, house: House, clock: Clock) -> None:
    job = bury(house, clock)
    answer = signed_in.post(f"/jobs/{job.id}/revive", {"next": "//evil.example/"})
    assert answer.location == f"/jobs/{job.id}"


def test_a_list_where_nothing_changed_is_204(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    hand_in(house, clock())
    address = poll(signed_in.get("/jobs").text)
    assert signed_in.get(address, headers=HTMX).status_code == 204


def test_only_rows_that_changed_are_sent(signed_in: Visitor, house: House, clock: Clock) -> None:
    first = hand_in(house, clock())
    second = hand_in(house, clock(), sound(0.2))
    address = poll(signed_in.get("/jobs").text)
    held = claim(house, State.CREATED, clock())
    house.queue.report(held, 0.4, clock())
    third = hand_in(house, clock(), sound(0.3), "new.wav")
    answer = signed_in.get(address, headers=HTMX)
    assert ids(answer.text) == [first.id, third.id]
    assert second.id not in answer.text.replace(poll(answer.text), "")
    assert "Converting" in answer.text
    assert "40%" in answer.text
    # What the page knows now is no news any more.
    marks = re.findall(r'name="watch" value="([^"]+)"', answer.text)
    waiting = [mark for mark in re.findall(r"watch=([^&]+)", address) if second.id in mark]
    renewed = poll(answer.text).split("&watch=")[0]
    renewed += "".join(f"&watch={mark}" for mark in [*marks, *waiting])
    assert signed_in.get(renewed, headers=HTMX).status_code == 204


def test_an_older_page_takes_in_no_new_rows(signed_in: Visitor, house: House, clock: Clock) -> None:
    old = hand_in(house, clock())
    hand_in(house, clock(), sound(0.2))
    page = signed_in.get(f"/jobs?before={old.seq + 1}").text
    hand_in(house, clock(), sound(0.3))
    answer = signed_in.get(poll(page), headers=HTMX)
    assert ids(answer.text) == []
    assert 'id="jobs-head"' in answer.text


def test_the_list_asks_often_only_while_something_moves(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    hand_in(house, clock())
    assert 'hx-trigger="every 3s' in signed_in.get("/jobs").text
    finish(house, clock())
    assert 'hx-trigger="every 15s' in signed_in.get("/jobs").text


@pytest.mark.parametrize(
    "query", ["state=asleep", "before=x", "before=-1", f"before={'9' * 30}", "state='--"]
)
def test_nonsense_in_the_address_is_refused_in_words(signed_in: Visitor, query: str) -> None:
    answer = signed_in.get(f"/jobs?{query}")
    assert answer.status_code == 400
    assert "could not be understood" in answer.text


def test_waiting_is_told_apart_from_running(signed_in: Visitor, house: House, clock: Clock) -> None:
    running = hand_in(house, clock(), name="running.wav")
    claim(house, State.CREATED, clock())
    paused = hand_in(house, clock(), sound(0.2), "paused.wav")
    held = claim(house, State.CREATED, clock())
    house.queue.retry(held, AppError("disk_full"), 120, clock())
    page = signed_in.get("/jobs").text
    rows = {
        name: page.split(f'<tr id="job-{name}"')[1].split("</tr>")[0]
        for name in (running.id, paused.id)
    }
    assert 'data-tone="working"' in rows[running.id]
    assert 'data-tone="stuck"' in rows[paused.id]
    assert "attempt 2 of 5" in rows[paused.id]
    assert "There is no room left on the disk." in rows[paused.id]


@pytest.mark.parametrize(("delay", "word"), [(0, "Waiting"), (10, "Recognizing")])
def test_a_job_in_line_for_the_engine_waits_and_one_at_an_outside_engine_does_not(
    signed_in: Visitor, house: House, clock: Clock, delay: float, word: str
) -> None:
    job = hand_in(house, clock())
    convert(house, clock())
    held = claim(house, State.CONVERTED, clock())
    assert house.queue.finish(held, Started("op", "An engine", delay), clock())
    row = signed_in.get("/jobs").text.split(f'<tr id="job-{job.id}"')[1].split("</tr>")[0]
    assert f'<span class="word">{word}</span>' in row


def test_the_list_costs_no_more_queries_for_more_jobs(
    signed_in: Visitor, house: House, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def queries() -> int:
        counted = []
        inner = house.database.read

        def counting() -> object:
            counted.append(1)
            return inner()

        with monkeypatch.context() as patch:
            patch.setattr(house.database, "read", counting)
            assert signed_in.get("/jobs").status_code == 200
        return len(counted)

    hand_in(house, clock())
    few = queries()
    for number in range(20):
        hand_in(house, clock(), sound() + bytes([number]))
    assert queries() == few


def test_ages_are_short_and_name_the_moment_when_pointed_at(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    hand_in(house, clock() - timedelta(hours=3))
    page = signed_in.get("/jobs", headers={"Accept-Language": "ru"}).text
    assert "3 ч назад" in page
    assert 'title="30 нояб. 2026, 09:00:00 (UTC)"' in page


def test_a_failed_job_has_no_second_line_when_it_was_cancelled(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    house.queue.cancel(job.id, clock())
    other = hand_in(house, clock(), sound(0.2))
    fail(house, clock())
    page = signed_in.get("/jobs").text
    assert "detail" not in page.split(f'id="job-{job.id}"')[1].split("</tr>")[0]
    assert "detail" in page.split(f'id="job-{other.id}"')[1].split("</tr>")[0]
