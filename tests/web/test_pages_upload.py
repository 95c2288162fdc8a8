"""The upload page without scripts and as the script asks: what is taken, refused and noticed."""

import io
import re
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.assembly import House
from app.job import Source, State
from app.queue.port import JobFilter
from tests.web.conftest import Clock, make_settings
from tests.web.hands import fail, finish, sound
from tests.web.visitor import Visitor

JSON = {"Accept": "application/json"}


@pytest.fixture
def closed_app(tmp_path: Any, app: Flask) -> Flask:
    settings = make_settings(tmp_path, intake={"auth": "token"})
    bundle = app.extensions["pisar"]
    app.extensions["pisar"] = type(bundle)(**{**vars(bundle), "settings": settings})
    return app


def send(
    visitor: Visitor,
    *files: tuple[bytes, str],
    headers: dict[str, str] | None = None,
    **fields: str,
) -> TestResponse:
    data = {"file": [(io.BytesIO(content), name) for content, name in files], **fields}
    return visitor.post("/", data, content_type="multipart/form-data", headers=headers or {})


def jobs(house: House) -> list[Any]:
    return list(house.queue.page(JobFilter(), before=None, limit=100).jobs)


def nonce(visitor: Visitor) -> str:
    found = re.search(r'name="nonce" value="([^"]+)"', visitor.get("/").text)
    assert found
    return found[1]


def test_limits_are_told_before_anything_is_sent(visitor: Visitor) -> None:
    page = visitor.get("/").text
    assert "Any sound or video, up to 8 GB and 6 hours each." in page
    assert f'data-max-bytes="{8 * 1024**3}"' in page


def test_one_recording_leads_to_its_page(visitor: Visitor, house: House) -> None:
    answer = send(visitor, (sound(), "запись.ogg"), language="ru")
    [job] = jobs(house)
    assert (answer.status_code, answer.location) == (303, f"/jobs/{job.id}")
    assert (job.display_name, job.language, job.source) == ("запись.ogg", "ru", Source.WEB)


def test_several_recordings_lead_to_a_list_of_them(visitor: Visitor, house: House) -> None:
    answer = send(visitor, (sound(), "one.wav"), (sound(0.02), "two.wav"))
    assert answer.status_code == 303
    page = visitor.get(answer.location).text
    for job in jobs(house):
        assert f'href="/jobs/{job.id}"' in page
        assert job.display_name in page


def test_cm02_an_empty_one_among_several_is_told_and_the_rest_is_taken(
    visitor: Visitor, house: House
) -> None:
    answer = send(visitor, (b"", "empty.wav"), (sound(), "full.wav"))
    assert answer.status_code == 422
    assert "The file is empty." in answer.text
    assert [job.display_name for job in jobs(house)] == ["full.wav"]


def test_a_form_without_a_file_comes_back_with_the_reason(visitor: Visitor, house: House) -> None:
    answer = send(visitor, (b"", ""), language="ru")
    assert answer.status_code == 400
    assert "No file was sent." in answer.text
    assert '<option value="ru" selected>' in answer.text
    assert jobs(house) == []


def test_cu06_the_same_form_sent_twice_is_one_job(visitor: Visitor, house: House) -> None:
    secret = nonce(visitor)
    answers = [send(visitor, (sound(), "a.wav"), nonce=secret) for _ in range(2)]
    [job] = jobs(house)
    assert {answer.location for answer in answers} == {f"/jobs/{job.id}"}


def test_cu06_the_way_back_to_the_form_takes_another_recording(
    visitor: Visitor, house: House
) -> None:
    secret = nonce(visitor)
    send(visitor, (sound(), "a.wav"), nonce=secret)
    assert send(visitor, (sound(0.5), "b.wav"), nonce=secret).status_code == 303
    assert len(jobs(house)) == 2


def test_i10_the_same_bytes_are_noticed_and_may_be_transcribed_again(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    send(visitor, (sound(), "a.wav"))
    finish(house, clock())
    answer = send(visitor, (sound(), "b.wav"))
    [job] = jobs(house)
    assert answer.location == f"/jobs/{job.id}?same=1"
    page = visitor.get(answer.location).text
    assert "You handed this recording in before" in page
    again = visitor.post(f"/jobs/{job.id}/again")
    assert again.status_code == 303
    assert len(jobs(house)) == 2


def test_what_failed_before_is_tried_anew(visitor: Visitor, house: House, clock: Clock) -> None:
    send(visitor, (sound(), "a.wav"))
    fail(house, clock())
    assert "same" not in send(visitor, (sound(), "a.wav")).location
    assert len(jobs(house)) == 2


def test_the_script_is_answered_in_json(visitor: Visitor, house: House) -> None:
    first = send(visitor, (sound(), "a.wav"), headers=JSON)
    [job] = jobs(house)
    assert first.status_code == 201
    assert first.json == {
        "id": job.id,
        "name": "a.wav",
        "page": f"/jobs/{job.id}",
        "line": f"/jobs/{job.id}/line",
        "again": f"/jobs/{job.id}/again",
        "same_bytes": False,
    }
    second = send(visitor, (sound(), "a.wav"), headers=JSON)
    assert (second.status_code, second.json["same_bytes"]) == (200, True)


def test_the_script_is_refused_in_json_by_the_readers_language(visitor: Visitor) -> None:
    headers = JSON | {"Accept-Language": "ru"}
    answer = send(visitor, (b"", "a.wav"), headers=headers)
    assert answer.status_code == 422
    assert answer.json["code"] == "empty_file"
    assert answer.json["detail"].startswith("Файл пуст.")


def test_the_line_of_a_job_asks_again_until_it_has_ended(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    send(visitor, (sound(), "a.wav"))
    [job] = jobs(house)
    line = visitor.get(f"/jobs/{job.id}/line").text
    assert "next in line" in line
    assert "hx-get" in line
    finish(house, clock())
    assert "hx-get" not in visitor.get(f"/jobs/{job.id}/line").text


def test_the_line_of_a_failed_job_says_why(visitor: Visitor, house: House, clock: Clock) -> None:
    send(visitor, (sound(), "a.wav"))
    [job] = jobs(house)
    fail(house, clock(), "truncated")
    for path in (f"/jobs/{job.id}/line", f"/?job={job.id}"):
        assert "The file is cut off" in visitor.get(path).text


def test_cu14_the_page_says_that_no_worker_runs(visitor: Visitor, workers: list[int]) -> None:
    assert "No worker is running" not in visitor.get("/").text
    workers[0] = 0
    assert "No worker is running" in visitor.get("/").text


def test_i07_who_may_not_hand_in_is_shown_the_way_to_sign_in(closed_app: Flask) -> None:
    page = Visitor(closed_app).get("/").text
    assert "Only the owner hands in recordings here." in page
    assert 'id="upload"' not in page


def test_i07_who_may_not_hand_in_is_refused(closed_app: Flask, house: House) -> None:
    assert send(Visitor(closed_app), (sound(), "a.wav")).status_code in (303, 401)
    assert house.queue.counts().get(State.CREATED, 0) == 0


def test_unknown_ids_in_the_address_are_passed_over(visitor: Visitor) -> None:
    answer = visitor.get("/?job=nosuchjob&job=../../etc")
    assert answer.status_code == 200
    assert "etc" not in answer.text.split("<main")[1].split("</main>")[0]
