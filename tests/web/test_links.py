"""Upload links: one recording without an account, and its text where the link was given (CT01)."""

import io
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.assembly import House
from app.chats import JobMessages, LinkFor, Links
from app.clock import utcnow
from app.job import Job, Source
from app.migrate import open_database
from app.queue.port import JobFilter
from app.settings import Settings
from app.web.gate import Gate
from tests.web.conftest import Clock, Path, make_settings
from tests.web.site import running
from tests.web.visitor import Visitor

OGG = b"OggS" + bytes(60)
FOR_CHAT = LinkFor(77, 9, 5, 3, 9, "ru")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A server that strangers reach, and may not hand in to."""
    return make_settings(tmp_path, intake={"auth": "token"})


def link(house: House, clock: Clock, wanted: LinkFor = FOR_CHAT) -> str:
    return f"/u/{Links(house.database).make(wanted, 3600, clock())}"


def send(visitor: Visitor, url: str, data: bytes = OGG, **more: Any) -> TestResponse:
    return visitor.post(url, {"file": (io.BytesIO(data), "встреча.ogg")}, **more)


def jobs(house: House) -> list[Job]:
    return list(house.queue.page(JobFilter(), before=None, limit=10).jobs)


def test_ct01_a_recording_by_a_link_answers_the_message_it_was_made_for(
    house: House, visitor: Visitor, clock: Clock
) -> None:
    url = link(house, clock)
    assert "multiple" not in visitor.get(url).text
    answer = send(visitor, url)
    (job,) = jobs(house)
    assert (answer.status_code, answer.location) == (303, f"/jobs/{job.id}")
    assert (job.source, job.sender, job.display_name) == (
        Source.TELEGRAM,
        "telegram:9",
        "встреча.ogg",
    )
    assert (job.tg_chat_id, job.tg_reply_message_id) == (9, 5)
    kept = JobMessages(house.database).of_job(job.id)
    assert kept and (kept.chat, kept.message, kept.thread, kept.language) == (9, 5, 3, "ru")


def test_ct01_a_link_takes_one_recording_and_then_leads_to_it(
    house: House, visitor: Visitor, clock: Clock
) -> None:
    url = link(house, clock)
    send(visitor, url)
    assert send(visitor, url).status_code == 410
    (job,) = jobs(house)
    assert visitor.get(url).location == f"/jobs/{job.id}"


def test_ct01_the_same_message_by_telegram_and_by_its_link_is_one_job(
    house: House, visitor: Visitor, clock: Clock
) -> None:
    first, second = link(house, clock), link(house, clock)
    send(visitor, first)
    answer = send(visitor, second)
    (job,) = jobs(house)
    assert answer.location == f"/jobs/{job.id}"


def test_a_link_whose_time_is_over_opens_nothing(
    house: House, visitor: Visitor, clock: Clock
) -> None:
    url = link(house, clock)
    clock.go_on(3601)
    assert visitor.get(url).status_code == 410
    assert send(visitor, url).status_code == 410
    assert visitor.get("/u/guess").status_code == 410
    assert jobs(house) == []


def test_a_refused_recording_leaves_the_link_good(
    house: House, visitor: Visitor, clock: Clock
) -> None:
    url = link(house, clock)
    assert send(visitor, url, b"").status_code == 422
    assert visitor.post(url).status_code == 400
    assert send(visitor, url).status_code == 303


def test_a_script_is_told_in_json(house: House, visitor: Visitor, clock: Clock) -> None:
    answer = send(visitor, link(house, clock), headers={"Accept": "application/json"})
    (job,) = jobs(house)
    assert answer.status_code == 201
    assert answer.json and answer.json["page"] == f"/jobs/{job.id}"


def test_i07_the_owner_makes_a_link_that_is_shown_once(
    house: House, signed_in: Visitor, app: Flask
) -> None:
    made = signed_in.post("/links").text
    url = made.partition('<code id="new-link">')[2].partition("</code>")[0]
    path = url.removeprefix("http://localhost")
    assert path.startswith("/u/")
    assert path not in signed_in.get("/").text
    stranger = Visitor(app)
    assert send(stranger, path).status_code == 303
    (job,) = jobs(house)
    assert (job.source, job.tg_chat_id) == (Source.WEB, None)
    assert job.sender and job.sender.startswith("link:")


def test_i07_the_gate_lets_in_by_a_good_link_alone(house: House, clock: Clock) -> None:
    gate = Gate(house.settings, house.owners, Links(house.database), clock)
    url = link(house, clock)
    assert gate.is_intake("POST", url)
    assert gate.refuses_sender(url, {}) is None
    assert gate.refuses_sender("/u/guess", {}) == "link_over"
    assert gate.refuses_sender("/", {}) == "token_required"
    clock.go_on(3601)
    assert gate.refuses_sender(url, {}) == "link_over"


def test_i07_the_server_lets_a_stranger_in_by_a_good_link_alone(tmp_path: Path) -> None:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.ogg"\r\n\r\n'
        + OGG
        + b"\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x", "Accept": "application/json"}
    with running(tmp_path, PISAR_INTAKE__AUTH="token") as site:
        database = open_database(site.data_dir, utcnow())
        good = f"/u/{Links(database).make(FOR_CHAT, 3600, utcnow())}"
        database.close()
        assert site.ask("POST", "/u/guess", body, headers)[0] == 410
        assert site.ask("POST", "/", body, headers)[0] == 401
        assert site.ask("POST", good, body, headers)[0] == 201
        assert site.ask("POST", good, body, headers)[0] == 410
        assert len(site.stored()) == 1
