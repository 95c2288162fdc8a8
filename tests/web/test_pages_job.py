"""The page of one job: what it says in each state, to whom, and how it is kept up to date."""

import re
from datetime import timedelta

import pytest
from flask import Flask

from app.assembly import House
from app.errors import KINDS, AppError
from app.job import Job, State, Transcript
from app.queue.port import Recognized, Started
from app.web import job_view
from app.web.pace import Pace
from tests.web.conftest import Clock
from tests.web.hands import claim, convert, fail, finish, hand_in, sound
from tests.web.visitor import HTMX, Visitor

HOSTILE = "<img src=x onerror=alert(1)>"


def state_line(page: str) -> str:
    part = page.split('id="job-state"')[1].split("</div>")[0]
    return " ".join(re.sub(r"<[^>]+>", "", part.split(">", 1)[1]).split())


def live(visitor: Visitor, page: str) -> str | None:
    """The address that an open page asks, or None when it asks no more."""
    found = re.search(r'hx-get="(/jobs/[^"]+/live[^"]*)"', page)
    return found[1].replace("&amp;", "&") if found else None


def page_of(visitor: Visitor, job: Job) -> str:
    answer = visitor.get(f"/jobs/{job.id}")
    assert answer.status_code == 200
    return answer.text


def test_s09_who_knows_the_id_sees_the_page_but_cannot_revive(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    fail(house, clock())
    page = page_of(visitor, job)
    assert "This is not a sound or video file" in page
    assert "/revive" not in page
    assert visitor.get("/jobs/nosuchjobatall0").status_code == 404


def test_p15_the_owner_is_offered_to_revive(signed_in: Visitor, house: House, clock: Clock) -> None:
    job = hand_in(house, clock())
    fail(house, clock())
    assert f'action="/jobs/{job.id}/revive"' in page_of(signed_in, job)


def test_every_way_of_waiting_and_working_has_its_words(
    visitor: Visitor, house: House, clock: Clock, workers: list[int]
) -> None:
    first = hand_in(house, clock())
    second = hand_in(house, clock(), sound(0.2))
    third = hand_in(house, clock(), sound(0.3))
    assert state_line(page_of(visitor, first)) == "Waiting – next in line"
    assert state_line(page_of(visitor, second)) == "Waiting – 2nd in line"
    assert state_line(page_of(visitor, third)) == "Waiting – 3rd in line"
    held = claim(house, State.CREATED, clock())
    assert state_line(page_of(visitor, first)) == "Converting"
    house.queue.report(held, 0.999, clock())
    assert state_line(page_of(visitor, first)) == "Converting – 99%"
    house.queue.retry(held, AppError("disk_full"), 90, clock())
    assert state_line(page_of(visitor, first)) == "Waiting – next try at 12:01, attempt 2 of 5"
    workers[0] = 0
    assert state_line(page_of(visitor, second)) == "Waiting – no worker is running"


def test_every_end_has_its_words(visitor: Visitor, house: House, clock: Clock) -> None:
    spoken = hand_in(house, clock())
    finish(house, clock())
    silent = hand_in(house, clock(), sound(0.2))
    finish(house, clock(), text="")
    broken = hand_in(house, clock(), sound(0.3))
    fail(house, clock())
    unwanted = hand_in(house, clock(), sound(0.4))
    house.queue.cancel(unwanted.id, clock())
    assert state_line(page_of(visitor, spoken)) == "Done"
    assert state_line(page_of(visitor, silent)) == "Done – no speech found"
    assert state_line(page_of(visitor, broken)) == "Failed"
    assert state_line(page_of(visitor, unwanted)) == "Cancelled"


@pytest.mark.parametrize("code", sorted(KINDS))
def test_every_error_is_told_in_its_sentence(
    visitor: Visitor, house: House, clock: Clock, code: str
) -> None:
    job = hand_in(house, clock())
    fail(house, clock(), code)
    page = page_of(visitor, job)
    if code != "cancelled":
        first_words = KINDS[code].sentence.split(".")[0].split("`")[0].replace("'", "&#39;")
        assert first_words in page


def test_progress_stands_in_title_and_bar(visitor: Visitor, house: House, clock: Clock) -> None:
    job = hand_in(house, clock(), name="interview.m4a")
    house.queue.report(claim(house, State.CREATED, clock()), 0.41, clock())
    page = page_of(visitor, job)
    assert "<title>41% · interview.m4a · Pisar</title>" in page
    assert re.search(r'<progress max="1"\s+value="0.41"', page)
    assert "favicon/active.svg" in page


def test_the_time_left_follows_the_pace_that_was_seen(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    held = claim(house, State.CREATED, clock())
    house.queue.report(held, 0.5, clock())
    assert state_line(page_of(visitor, job)) == "Converting – 50%"
    clock.go_on(60)
    house.queue.report(held, 0.6, clock())
    assert state_line(page_of(visitor, job)) == "Converting – 60%, about 4 minutes left"
    clock.go_on(60)
    house.queue.report(held, 0.95, clock())
    assert state_line(page_of(visitor, job)).endswith("95%, less than a minute left")


def test_a_new_attempt_begins_its_pace_anew(app: Flask, house: House, clock: Clock) -> None:
    job = hand_in(house, clock())
    held = claim(house, State.CREATED, clock())
    house.queue.report(held, 0.1, clock())
    pace = Pace()
    pace.seconds_left(house.queue.get(job.id), clock())
    house.queue.release(held, clock())
    held = claim(house, State.CREATED, clock())
    house.queue.report(held, 0.5, clock())
    assert pace.seconds_left(house.queue.get(job.id), clock() + timedelta(seconds=60)) is None
    assert job_view.PACE in app.extensions


def test_an_open_page_is_told_of_changes_alone(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    page = page_of(visitor, job)
    address = live(visitor, page)
    assert address
    assert visitor.get(address, headers=HTMX).status_code == 204
    held = claim(house, State.CREATED, clock())
    begun = visitor.get(address, headers=HTMX).text
    assert 'id="job-history"' in begun
    house.queue.report(held, 0.2, clock())
    moved = visitor.get(live(visitor, begun) or "", headers=HTMX).text
    assert "20%" in moved
    assert 'id="job-history"' not in moved


def test_an_ended_job_is_asked_for_no_more(visitor: Visitor, house: House, clock: Clock) -> None:
    job = hand_in(house, clock())
    address = live(visitor, page_of(visitor, job))
    finish(house, clock(), text="Good morning.")
    ended = visitor.get(address or "", headers=HTMX).text
    assert "Good morning." in ended
    assert 'id="sound"' in ended
    assert live(visitor, ended) is None
    assert live(visitor, page_of(visitor, job)) is None


def test_without_scripts_the_page_renews_itself_while_something_moves(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    assert 'http-equiv="refresh"' in page_of(visitor, job)
    finish(house, clock())
    assert 'http-equiv="refresh"' not in page_of(visitor, job)


def test_the_text_comes_with_player_downloads_language_and_engine(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    finish(house, clock())
    page = page_of(visitor, job)
    assert f'src="/jobs/{job.id}/audio"' in page
    assert f'href="/jobs/{job.id}/audio#t=0.0"' in page
    for form in ("txt", "srt", "vtt", "json"):
        assert f'href="/api/jobs/{job.id}/transcript.{form}"' in page
        assert visitor.get(f"/api/jobs/{job.id}/transcript.{form}").status_code == 200
    assert "English, as heard" in page
    assert "embedded" in page


def test_a_recording_that_failed_after_its_conversion_can_still_be_heard(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    convert(house, clock())
    assert 'id="sound"' not in page_of(visitor, job)
    house.queue.fail(
        claim(house, State.CONVERTED, clock()), AppError("recognizer_refused"), clock()
    )
    assert 'id="sound"' in page_of(visitor, job)


def test_cm02_no_speech_still_has_its_downloads(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    finish(house, clock(), text="")
    page = page_of(visitor, job)
    assert "Nobody speaks in this recording" in page
    assert f"/api/jobs/{job.id}/transcript.srt" in page
    assert "Copy the text" not in page


def test_cm03_no_language_is_promised_where_nobody_spoke(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    assert "will be detected" in page_of(visitor, job)
    convert(house, clock())
    assert house.queue.finish(
        claim(house, State.CONVERTED, clock()), Started("op", "embedded", 0), clock()
    )
    silence = Recognized(Transcript("", ()), None)
    assert house.queue.finish(claim(house, State.TRANSCRIBE, clock()), silence, clock())
    page = page_of(visitor, job)
    assert "none was heard" in page and "will be detected" not in page


def test_p42_the_history_is_told_in_plain_words(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    held = claim(house, State.CREATED, clock())
    clock.go_on(3)
    house.queue.retry(held, AppError("convert_crashed", "signal 9"), 0.001, clock())
    clock.go_on(1)
    convert(house, clock())
    house.queue.release_lost(lambda _: True, clock())
    claim(house, State.CONVERTED, clock())
    house.queue.release_lost(lambda _: True, clock())
    page = page_of(visitor, job)
    history = re.sub(r"<[^>]+>|\s+", " ", page.split('id="job-history"')[1].split("</ol>")[0])
    told = [
        "Handed in through the API",
        "Attempt 1 to convert failed",
        "The converter stopped unexpectedly.",
        "signal 9",
        "Converted in 1 sec",
        "Given back: the worker was gone",
    ]
    places = [history.index(words) for words in told]
    assert places == sorted(places)


def test_p42_a_job_that_waits_for_the_engine_is_not_said_to_be_recognized(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    ahead, job = hand_in(house, clock()), hand_in(house, clock(), sound(0.2))
    for _ in (ahead, job):
        convert(house, clock())
        held = claim(house, State.CONVERTED, clock())
        assert house.queue.finish(held, Started("op", "embedded", 0), clock())
    page = page_of(visitor, job)
    assert "in line" in page
    assert "Given to the speech engine" in page and "Recognition began" not in page


def test_cu08_markup_stays_text_everywhere(signed_in: Visitor, house: House, clock: Clock) -> None:
    spoken = hand_in(house, clock(), name=f"{HOSTILE}.ogg")
    finish(house, clock(), text=HOSTILE)
    broken = hand_in(house, clock(), sound(0.2), f"{HOSTILE}.mp3")
    held = claim(house, State.CREATED, clock())
    house.queue.fail(held, AppError("not_media", HOSTILE), clock())
    for path in (f"/jobs/{spoken.id}", f"/jobs/{broken.id}", "/jobs", f"/?job={spoken.id}"):
        page = signed_in.get(path).text
        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_p48_whoever_knows_the_id_may_cancel_once(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    answer = visitor.post(f"/jobs/{job.id}/cancel")
    assert (answer.status_code, answer.location) == (303, f"/jobs/{job.id}")
    assert house.queue.get(job.id).error_code == "cancelled"
    assert visitor.post(f"/jobs/{job.id}/cancel").status_code == 409


def test_a_recording_whose_file_is_gone_offers_no_second_try(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    finish(house, clock())
    assert "Transcribe it again" in page_of(visitor, job)
    house.storage.delete(house.queue.file(job.source_file))
    page = page_of(visitor, job)
    assert "Transcribe it again" not in page
    assert "the file is gone" in page


def test_commands_in_a_sentence_are_set_as_such(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    job = hand_in(house, clock())
    fail(house, clock(), "engine_unavailable")
    assert "Run <code>pisar check</code> to see why." in page_of(visitor, job)
