"""The HTTP API by its promises: handing in, asking, listing, reviving, cancelling."""

import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.assembly import House
from app.errors import AppError
from app.job import Source, State
from app.owners import Scope
from app.settings import Settings
from tests.web import hands
from tests.web.conftest import Clock, make_settings
from tests.web.hands import sound
from tests.web.visitor import SAME_SITE, Visitor

STRANGE_NAMES = [
    'запись "встречи" №1.ogg',
    "ы" * 251 + ".ogg",
    "...",
    "../../app.py",
    "/etc/passwd",
    "CON",
    "a\u202egpj.ogg",
    "<img src=x onerror=alert(1)>.ogg",
]


def post(
    client: FlaskClient, data: bytes | None = None, name: str = "a.wav", **fields: str
) -> TestResponse:
    # A browser writes a quote in a name so (WHATWG, multipart/form-data).
    sent_name = name.replace('"', "%22")
    form: dict[str, Any] = {"file": (io.BytesIO(sound() if data is None else data), sent_name)}
    return client.post("/api/jobs", data={**form, **fields})


PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\nsound'


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", PART % b"a.wav" + b"\r\n--x--\r\n"),
        ("multipart/form-data; boundary=y", PART % b"a.wav" + b"\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", PART % b"a.wav"),
        ("multipart/form-data; boundary=x", PART % b"\xff\xfe.wav" + b"\r\n--x--\r\n"),
    ],
    ids=["no boundary", "another boundary", "cut off", "a name that is no UTF-8"],
)
@pytest.mark.parametrize("path", ["/", "/api/jobs", "/login"])
def test_a_torn_form_is_called_torn_and_leaves_nothing(
    client: FlaskClient, house: House, path: str, content_type: str, body: bytes
) -> None:
    answer = client.post(
        path, data=body, content_type=content_type, headers={"Accept": "application/json"}
    )
    assert answer.status_code == 400 and answer.json["code"] == "bad_request"
    assert not any(house.queue.counts().values())
    assert hands.stored_files(house) == []


def test_handing_in_is_logged_without_the_name(
    client: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        job_id = post(client, name="canary.wav").json["id"]
    (told,) = [record for record in caplog.records if record.name == "app.intake"]
    assert (told.levelname, told.getMessage()) == ("INFO", "handed in")
    assert vars(told)["job_id"] == job_id and vars(told)["source"] == "api"
    assert "canary" not in str(vars(told))


def test_a_form_hands_in_a_recording(client: FlaskClient, house: House) -> None:
    answer = post(client, name="a.wav")
    assert answer.status_code == 201
    body = answer.json
    assert body["state"] == "created" and body["source"] == "api"
    assert answer.location == body["status_url"] == f"/api/jobs/{body['id']}"
    job = house.queue.get(body["id"])
    assert job.source is Source.API and job.sender == "anonymous" and job.display_name == "a.wav"
    with house.storage.open(house.queue.file(job.file)) as file:
        assert file.read() == sound()


@pytest.mark.parametrize("content_type", ["application/octet-stream", "audio/wav", None])
def test_the_body_alone_is_a_recording_whatever_type_it_claims(
    client: FlaskClient, house: House, content_type: str | None
) -> None:
    # None is what `curl --data-binary` sends: application/x-www-form-urlencoded.
    answer = client.post(
        "/api/jobs?name=b.wav&language=ru",
        data=sound(),
        content_type=content_type or "application/x-www-form-urlencoded",
    )
    assert answer.status_code == 201
    job = house.queue.get(answer.json["id"])
    assert (job.display_name, job.language) == ("b.wav", "ru")
    assert house.queue.file(job.file).size == len(sound())


@pytest.mark.parametrize("is_first", [True, False])
def test_the_language_may_come_before_or_after_the_file(
    client: FlaskClient, house: House, is_first: bool
) -> None:
    field = b'--x\r\nContent-Disposition: form-data; name="language"\r\n\r\nru\r\n'
    file = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        + sound()
        + b"\r\n"
    )
    body = (field + file if is_first else file + field) + b"--x--\r\n"
    answer = client.post("/api/jobs", data=body, content_type="multipart/form-data; boundary=x")
    assert house.queue.get(answer.json["id"]).language == "ru"


def test_zero_bytes_are_refused_and_leave_nothing(client: FlaskClient, house: House) -> None:
    for answer in (post(client, b""), client.post("/api/jobs?name=a.wav", data=b"")):
        assert answer.status_code == 422 and answer.json["code"] == "empty_file"
    assert sum(house.queue.counts().values()) == 0
    assert hands.stored_files(house) == []


def test_an_unknown_language_is_refused_and_leaves_nothing(
    client: FlaskClient, house: House
) -> None:
    answer = post(client, language="klingon")
    assert answer.status_code == 422 and answer.json["code"] == "unknown_language"
    assert hands.stored_files(house) == []


@pytest.mark.parametrize(
    "form", [{}, {"file": "not a file"}, {"other": (io.BytesIO(b"x"), "a.wav")}]
)
def test_a_form_without_a_file_is_refused_and_leaves_nothing(
    client: FlaskClient, house: House, form: dict[str, Any]
) -> None:
    answer = client.post("/api/jobs", data=form, content_type="multipart/form-data")
    assert answer.status_code == 400 and answer.json["code"] == "no_file"
    assert hands.stored_files(house) == []


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_cu02_cu13_a_name_is_kept_for_people_and_never_is_a_path(
    client: FlaskClient, house: House, name: str
) -> None:
    answer = post(client, name=name)
    assert answer.status_code == 201
    job = house.queue.get(answer.json["id"])
    assert job.display_name == name.replace("\u202e", "")
    stored = house.queue.file(job.file).file
    assert re.fullmatch(r"[0-9a-f-]{36}\.wav", stored)
    assert hands.stored_files(house) == [f"storage/files/{job.file}/{stored}"]
    with client.get(f"/jobs/{job.id}/source") as download:
        header = download.headers["Content-Disposition"]
    assert not set('/\\:<>|?*"\u202e') & set(header.partition('filename="')[2].partition('"')[0])
    assert len(download.headers.getlist("Content-Disposition")) == 1


@pytest.mark.parametrize("name", ["..\\..\\boot.ini", "C:\\temp\\a.ogg", "/etc/passwd", "a%00b"])
def test_cu13_a_name_in_the_address_never_is_a_path(
    client: FlaskClient, house: House, name: str
) -> None:
    answer = client.post("/api/jobs", query_string={"name": name}, data=sound())
    job = house.queue.get(answer.json["id"])
    assert job.display_name == name
    stored = house.queue.file(job.file)
    assert hands.stored_files(house) == [f"storage/files/{stored.id}/{stored.file}"]


def test_cu02_a_russian_name_downloads_with_that_name(client: FlaskClient) -> None:
    job_id = post(client, name="запись.ogg").json["id"]
    with client.get(f"/jobs/{job_id}/source") as download:
        header = download.headers["Content-Disposition"]
    assert header.endswith("filename*=UTF-8''%D0%B7%D0%B0%D0%BF%D0%B8%D1%81%D1%8C.ogg")


def test_cu13_a_name_with_line_breaks_makes_no_header(client: FlaskClient) -> None:
    answer = client.post("/api/jobs?name=a%0d%0aX-Evil:%201.ogg%00", data=sound())
    with client.get(f"/jobs/{answer.json['id']}/source") as download:
        assert "X-Evil" not in download.headers
        assert download.status_code == 200


def test_cu06_a_repeated_key_gives_the_same_job(client: FlaskClient, house: House) -> None:
    key = {"Idempotency-Key": "k1"}
    first = client.post("/api/jobs?name=a.wav", data=sound(), headers=key)
    again = client.post("/api/jobs?name=a.wav", data=sound(), headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json["id"] == again.json["id"]
    assert len(hands.stored_files(house)) == 1


def test_cu06_five_repeats_at_once_make_one_job(app: Flask, house: House) -> None:
    def once(_: int) -> TestResponse:
        return app.test_client().post(
            "/api/jobs?name=a.wav", data=sound(), headers={"Idempotency-Key": "k1"}
        )

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(once, range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert len(hands.stored_files(house)) == 1


def test_cu06_a_key_used_for_other_bytes_is_a_conflict(client: FlaskClient, house: House) -> None:
    key = {"Idempotency-Key": "k1"}
    client.post("/api/jobs?name=a.wav", data=sound(), headers=key)
    answer = client.post("/api/jobs?name=a.wav", data=sound(0.02), headers=key)
    assert answer.status_code == 409 and answer.json["code"] == "idempotency_conflict"
    assert len(hands.stored_files(house)) == 1


def test_i10_the_same_bytes_without_a_key_are_two_jobs(client: FlaskClient) -> None:
    assert post(client).json["id"] != post(client).json["id"]


@pytest.mark.parametrize("key", ["", "a b", "ключ", "x" * 256])
def test_a_key_that_is_none_is_refused(client: FlaskClient, key: str) -> None:
    headers = {"Idempotency-Key": key.encode().decode("latin-1")}
    answer = client.post("/api/jobs", data=sound(), headers=headers)
    assert answer.status_code == 400


def test_i08_a_job_in_line_tells_its_place(client: FlaskClient, house: House, clock: Clock) -> None:
    hands.hand_in(house, clock())
    body = client.get(f"/api/jobs/{hands.hand_in(house, clock()).id}").json
    assert body["position"] == 2
    assert body["waiting_for"] == {"code": "line", "sentence": "In line, number 2."}
    assert body["stage"] == "convert" and body["progress"] is None
    assert body["created"] == "2026-11-30T12:00:00.000Z"
    assert set(body["links"]) == {"self", "page", "audio", "txt", "srt", "vtt", "json"}
    assert body["text"] is body["segments"] is body["error"] is body["next_try"] is None


def test_i08_no_worker_is_said_to_be_why_it_waits(
    client: FlaskClient, house: House, clock: Clock, workers: list[int]
) -> None:
    job = hands.hand_in(house, clock())
    workers[0] = 0
    assert client.get(f"/api/jobs/{job.id}").json["waiting_for"]["code"] == "no_worker"


def test_i08_a_pause_tells_the_error_and_the_next_try(
    client: FlaskClient, house: House, clock: Clock
) -> None:
    job = hands.hand_in(house, clock())
    held = hands.claim(house, State.CREATED, clock())
    house.queue.retry(held, AppError("convert_crashed"), 30, clock())
    body = client.get(f"/api/jobs/{job.id}").json
    assert body["waiting_for"]["code"] == "retry_pause"
    assert body["next_try"] == "2026-11-30T12:00:30.000Z"
    assert body["error"]["code"] == "convert_crashed" and body["position"] is None
    assert body["attempts"] == 1
    clock.go_on(31)
    body = client.get(f"/api/jobs/{job.id}").json
    assert body["next_try"] is None and body["waiting_for"]["code"] == "line"


def test_i08_a_running_job_tells_its_progress(
    client: FlaskClient, house: House, clock: Clock
) -> None:
    job = hands.hand_in(house, clock())
    house.queue.report(hands.claim(house, State.CREATED, clock()), 0.4, clock())
    body = client.get(f"/api/jobs/{job.id}").json
    assert (body["stage"], body["progress"], body["position"]) == ("convert", 0.4, None)
    assert body["waiting_for"] is None


def test_i08_a_done_job_has_its_text(client: FlaskClient, house: House, clock: Clock) -> None:
    job = hands.hand_in(house, clock())
    hands.finish(house, clock(), "Доброе утро.")
    answer = client.get(f"/api/jobs/{job.id}")
    body = answer.json
    assert body["state"] == "done" and body["progress"] == 1.0 and body["error"] is None
    assert body["text"] == "Доброе утро." and "Доброе" in answer.text
    assert body["segments"] == [{"start": 0.0, "end": 1.5, "text": "Доброе утро.", "speaker": None}]
    assert (body["language"], body["duration"]) == ("en", 1.5)
    for form in ("txt", "srt", "vtt", "json"):
        file = client.get(body["links"][form])
        assert file.status_code == 200 and "Доброе утро." in file.text
        assert f'filename="interview.{form}"' in file.headers["Content-Disposition"]


def test_there_is_no_text_before_the_end(client: FlaskClient, house: House, clock: Clock) -> None:
    job = hands.hand_in(house, clock())
    answer = client.get(f"/api/jobs/{job.id}/transcript.txt")
    assert answer.status_code == 409 and answer.json["code"] == "not_done"
    assert client.get(f"/api/jobs/{job.id}/transcript.exe").status_code == 404


@pytest.mark.parametrize("job_id", ["abcdefghijklmno", "x", "..%2f..", "%00", "a" * 5000])
def test_a_job_that_is_not_there_is_not_found(client: FlaskClient, job_id: str) -> None:
    answer = client.get(f"/api/jobs/{job_id}")
    assert answer.status_code == 404 and answer.json["code"] == "not_found"
    assert answer.content_type == "application/problem+json"


def test_the_error_is_told_in_the_askers_language(
    client: FlaskClient, house: House, clock: Clock
) -> None:
    job = hands.hand_in(house, clock())
    hands.fail(house, clock(), "not_media")
    error = client.get(f"/api/jobs/{job.id}").json["error"]
    assert error["code"] == "not_media" and error["message"].startswith("This is not a sound")


def test_s08_the_list_is_not_for_strangers(client: FlaskClient) -> None:
    answer = client.get("/api/jobs")
    assert answer.status_code == 403 and answer.json["code"] == "forbidden"


def test_s08_the_owner_lists_jobs_by_state_and_page(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    ids = [hands.hand_in(house, clock(), name=f"{n}.wav").id for n in range(5)]
    hands.fail(house, clock())
    first = signed_in.get("/api/jobs?limit=2").json
    assert [job["name"] for job in first["jobs"]] == ["4.wav", "3.wav"]
    rest = signed_in.get(f"/api/jobs?limit=200&cursor={first['next']}").json
    assert [job["id"] for job in rest["jobs"]] == ids[2::-1] and rest["next"] is None
    failed = signed_in.get("/api/jobs?state=failed&state=dead").json["jobs"]
    assert [job["id"] for job in failed] == ids[:1]
    assert [job["id"] for job in signed_in.get("/api/jobs?state=failed,dead").json["jobs"]] == (
        ids[:1]
    )


@pytest.mark.parametrize("query", ["state=nope", "limit=0", "limit=x", "cursor=-1", "cursor=a"])
def test_a_list_that_makes_no_sense_is_refused(signed_in: Visitor, query: str) -> None:
    answer = signed_in.get(f"/api/jobs?{query}")
    assert answer.status_code == 400 and answer.json["code"] == "bad_request"


def test_s09_whoever_knows_the_id_may_cancel(
    client: FlaskClient, house: House, clock: Clock
) -> None:
    job = hands.hand_in(house, clock())
    answer = client.post(f"/api/jobs/{job.id}/cancel")
    assert answer.status_code == 200 and answer.json["state"] == "failed"
    assert answer.json["error"]["code"] == "cancelled"
    again = client.post(f"/api/jobs/{job.id}/cancel")
    assert again.status_code == 409 and again.json["code"] == "wrong_state"


def test_reviving_is_the_owners(client: FlaskClient, house: House, clock: Clock) -> None:
    job = hands.hand_in(house, clock())
    hands.fail(house, clock())
    answer = client.post(f"/api/jobs/{job.id}/revive")
    assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    _, secret = house.owners.tokens.create("ops", {Scope.MANAGE}, clock())
    bearer = {"Authorization": f"Bearer {secret}"}
    answer = client.post(f"/api/jobs/{job.id}/revive", headers=bearer)
    assert answer.status_code == 200 and answer.json["state"] == "created"
    assert client.post(f"/api/jobs/{job.id}/revive", headers=bearer).status_code == 409


def test_a_job_whose_file_is_gone_is_not_revived(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    job = hands.hand_in(house, clock())
    hands.fail(house, clock())
    house.storage.delete(house.queue.file(job.file))
    answer = signed_in.post(f"/api/jobs/{job.id}/revive")
    assert answer.status_code == 409 and answer.json["code"] == "source_missing"


class TestWhenHandingInNeedsAToken:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return make_settings(tmp_path, intake={"auth": "token"})

    def test_i07_a_stranger_is_refused(self, client: FlaskClient, house: House) -> None:
        answer = post(client)
        assert answer.status_code == 401 and answer.json["code"] == "token_required"
        assert hands.stored_files(house) == []

    def test_i07_a_token_with_the_scope_hands_in(
        self, client: FlaskClient, house: House, clock: Clock
    ) -> None:
        token, secret = house.owners.tokens.create("in", {Scope.INTAKE}, clock())
        bearer = {"Authorization": f"Bearer {secret}"}
        answer = client.post("/api/jobs", data=sound(), headers=bearer)
        assert answer.status_code == 201
        assert house.queue.get(answer.json["id"]).sender == f"token:{token.id}"

    def test_i07_a_token_without_the_scope_does_not(
        self, client: FlaskClient, house: House, clock: Clock
    ) -> None:
        _, secret = house.owners.tokens.create("out", {Scope.READ, Scope.MANAGE}, clock())
        bearer = {"Authorization": f"Bearer {secret}"}
        assert client.post("/api/jobs", data=sound(), headers=bearer).status_code == 403

    def test_i07_the_owner_hands_in(self, signed_in: Visitor, house: House, owner: str) -> None:
        answer = signed_in.post("/api/jobs", {"file": (io.BytesIO(sound()), "a.wav")})
        assert answer.status_code == 201
        assert house.queue.get(answer.json["id"]).sender == f"owner:{owner}"

    def test_s09_polling_needs_nothing(
        self, client: FlaskClient, house: House, clock: Clock
    ) -> None:
        job = hands.hand_in(house, clock())
        assert client.get(f"/api/jobs/{job.id}").status_code == 200


@pytest.mark.parametrize(
    ("server", "auth", "is_open"),
    [
        ("127.0.0.1", "auto", True),
        ("::1", "auto", True),
        ("192.0.2.1", "auto", False),
        ("192.0.2.1", "open", True),
        ("127.0.0.1", "token", False),
    ],
)
def test_i07_auto_is_open_on_loopback_only(
    tmp_path: Path, server: str, auth: str, is_open: bool
) -> None:
    settings = make_settings(tmp_path, server={"host": server}, intake={"auth": auth})
    assert settings.intake_is_open is is_open


class TestWhenLargeIsForbidden:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return make_settings(tmp_path, intake={"max_size": 1000})

    def test_s13_one_byte_too_many_is_refused_and_leaves_nothing(
        self, client: FlaskClient, house: House
    ) -> None:
        assert client.post("/api/jobs", data=b"x" * 1000).status_code == 201
        kept = hands.stored_files(house)
        for answer in (client.post("/api/jobs", data=b"x" * 1001), post(client, b"x" * 1001)):
            assert answer.status_code == 413 and answer.json["code"] == "too_large"
        assert hands.stored_files(house) == kept


def test_a_foreign_page_cannot_hand_in_where_everybody_may(client: FlaskClient) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    answer = client.post("/api/jobs", data=sound(), headers=headers)
    assert answer.status_code == 403 and answer.json["code"] == "cross_site"
    assert client.post("/api/jobs", data=sound(), headers=SAME_SITE).status_code == 201
