"""Errors: for people a page, for programs RFC 9457, for nobody a trace (I05)."""

import logging
import re
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.assembly import House
from app.errors import KINDS, AppError
from app.i18n import error_sentence
from app.resources import ROOT
from tests.web.visitor import HTMX, Visitor

SECRET = "/data/storage/files/x/0b1c-stored-name.ogg"


@pytest.fixture
def broken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at a job hits a fault of ours whose words hold what nobody may see."""

    def get(job_id: str) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(house.queue, "get", get)


def test_i05_a_fault_of_ours_is_told_without_its_words(
    client: FlaskClient, broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.get("/api/jobs/abcdefghijklmno")
    assert answer.status_code == 500 and answer.json["code"] == "internal"
    assert SECRET not in answer.text and "Traceback" not in answer.text
    failures = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(failures) == 1 and failures[0].exc_info
    assert "abcdefghijklmno" not in failures[0].getMessage()
    assert vars(failures[0])["route"] == "/api/jobs/<job_id>"


def test_a_fault_of_ours_on_a_page_is_a_page(visitor: Visitor, broken: None) -> None:
    answer = visitor.get("/jobs/abcdefghijklmno")
    assert answer.status_code == 500 and answer.mimetype == "text/html"
    assert "Something went wrong inside Pisar." in answer.text and SECRET not in answer.text


@pytest.mark.parametrize(
    ("method", "url", "status", "code"),
    [
        ("get", "/api/nothing", 404, "not_found"),
        ("get", "/api", 404, "not_found"),
        ("delete", "/api/jobs", 405, "method_not_allowed"),
        ("get", "/api/jobs/", 404, "not_found"),
        ("get", "/api//jobs", 404, "not_found"),
        ("get", "/api/jobs", 403, "forbidden"),
    ],
)
def test_i05_a_program_never_gets_html(
    client: FlaskClient, method: str, url: str, status: int, code: str
) -> None:
    answer = getattr(client, method)(url, headers={"Accept": "application/json"})
    assert answer.status_code == status
    assert answer.content_type == "application/problem+json"
    assert set(answer.json) == {"type", "title", "status", "detail", "code"}
    assert answer.json["code"] == code and answer.json["status"] == status


def test_a_method_that_is_not_taken_names_those_that_are(client: FlaskClient) -> None:
    allowed = client.delete("/api/jobs").headers["Allow"]
    assert {"GET", "POST"} <= set(allowed.split(", "))


def test_a_person_gets_a_page_with_a_way_on(visitor: Visitor) -> None:
    answer = visitor.get("/nothing")
    assert answer.status_code == 404 and answer.mimetype == "text/html"
    assert "There is nothing here." in answer.text and 'href="/"' in answer.text


def test_a_script_of_the_page_gets_only_the_sentence(visitor: Visitor) -> None:
    answer = visitor.get("/jobs/abcdefghijklmno", headers=HTMX)
    assert answer.status_code == 404
    assert answer.text.startswith("<p ") and "There is nothing here." in answer.text


def test_a_program_may_ask_a_page_for_json(client: FlaskClient) -> None:
    answer = client.get("/nothing", headers={"Accept": "application/json"})
    assert answer.content_type == "application/problem+json"


def test_i08_docs_list_every_code_with_its_status_and_sentences() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    row = re.compile(r"^\| `([a-z_]+)` \| (\d{3}) \| (.+) \| (.+) \|$", re.MULTILINE)
    assert row.findall(text) == [
        (code, str(kind.status), kind.sentence, error_sentence(code, "ru"))
        for code, kind in KINDS.items()
    ]


def test_docs_name_every_api_route(app: Flask) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for rule in app.url_map.iter_rules():
        if rule.rule.startswith("/api/") or rule.endpoint.startswith(("health.", "files.")):
            shown = re.sub(r"<(\w+)>", r"{\1}", rule.rule)
            assert f"`{shown}`" in text or f" {shown}`" in text, shown


def test_a_known_error_keeps_its_status_everywhere(
    house: House, client: FlaskClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full() -> None:
        raise AppError("disk_full", "ENOSPC")

    monkeypatch.setattr(house.intake, "draft", full)
    answer = client.post("/api/jobs", data=b"x")
    assert answer.status_code == 507 and answer.json["code"] == "disk_full"
    assert "ENOSPC" not in answer.text
