"""The main job, as a person does it: `pisar up`, then a recording by form, by API and by command.

The engine is the built-in one; the recordings are of real people.
"""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.console import Console
from tests.processes import wait_until
from tests.speech import DATA, reference, word_error_rate
from tests.web.site import free_port

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

WORST_ENGLISH = 0.05
WORST_RUSSIAN = 0.15
BOUNDARY = "a-line-that-no-recording-holds"


@dataclass
class Running:
    console: Console
    port: int

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request; the answer's status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def post_file(self, path: str, file: Path, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Post a file as a form without scripts does."""
        head = (
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"'
            "\r\nContent-Type: application/octet-stream\r\n\r\n"
        )
        body = head.encode() + file.read_bytes() + f"\r\n--{BOUNDARY}--\r\n".encode()
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        return self.send("POST", path, body, Content_Type=kind, **headers)

    def job(self, job_id: str) -> dict[str, object]:
        status, _, body = self.send("GET", f"/api/jobs/{job_id}")
        assert status == 200
        found: dict[str, object] = json.loads(body)
        return found

    def done(self, job_id: str) -> dict[str, object]:
        """The job, once it has ended; it must have ended well."""
        wait_until(lambda: self.job(job_id)["state"] in ("done", "failed", "dead"), 300, "an end")
        job = self.job(job_id)
        assert job["state"] == "done", job
        return job

    def serves(self) -> bool:
        try:
            return self.send("GET", "/readyz")[0] == 200
        except OSError:
            return False


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    port = free_port()
    console = Console(tmp_path_factory.mktemp("service"), port)
    del console.environ["PISAR_RECOGNIZER__MODEL_DIR"]
    service = console.start("up")
    running = Running(console, port)
    try:
        wait_until(running.serves, 60, "the service is ready")
        yield running
    finally:
        service.terminate()
        service.wait(30)
    assert service.returncode == 0


def test_english_by_the_form_comes_out_as_it_was_said(running: Running) -> None:
    status, headers, _ = running.post_file(
        "/", DATA / "english.flac", Origin=f"http://127.0.0.1:{running.port}"
    )
    assert status == 303
    job = running.done(urlsplit(headers["Location"]).path.rsplit("/", 1)[1])
    assert word_error_rate(reference("english"), str(job["text"]), "en") <= WORST_ENGLISH
    assert (job["language"], job["source"]) == ("en", "web")


def test_russian_by_the_api_comes_out_as_it_was_said(running: Running) -> None:
    status, headers, body = running.post_file("/api/jobs", DATA / "russian.ogg")
    assert status == 201
    created = json.loads(body)
    assert headers["Location"] == created["status_url"]
    job = running.done(created["id"])
    assert word_error_rate(reference("russian"), str(job["text"]), "ru") <= WORST_RUSSIAN
    assert (job["language"], job["source"]) == ("ru", "api")
    for kind in ("txt", "srt", "vtt", "json"):
        status, _, text = running.send("GET", f"/api/jobs/{created['id']}/transcript.{kind}")
        assert status == 200
        assert text


@pytest.mark.parametrize(
    ("name", "language", "worst"),
    [("english.flac", "en", WORST_ENGLISH), ("russian.ogg", "ru", WORST_RUSSIAN)],
)
def test_by_the_command_both_come_out_as_they_were_said(
    running: Running, name: str, language: str, worst: float
) -> None:
    answer = running.console.run("transcribe", str(DATA / name), timeout=300)
    assert answer.code == 0, answer.err
    said = reference(name.split(".", maxsplit=1)[0])
    assert word_error_rate(said, answer.out, language) <= worst


def test_cm02_nothing_at_all_is_refused_and_makes_no_job(running: Running, tmp_path: Path) -> None:
    empty = tmp_path / "empty.ogg"
    empty.touch()
    before = running.console.run("jobs", "--json").out
    status, _, body = running.post_file("/api/jobs", empty)
    assert (status, json.loads(body)["code"]) == (422, "empty_file")
    assert running.console.run("jobs", "--json").out == before


def test_a_file_that_is_no_recording_fails_after_one_attempt_and_says_why(
    running: Running, tmp_path: Path
) -> None:
    note = tmp_path / "note.mp3"
    note.write_text("This is not a recording.\n" * 40)
    answer = running.console.run("transcribe", str(note))
    assert answer.code == 1
    assert "not a sound or video file" in answer.err
    [failed] = json.loads(running.console.run("jobs", "--state", "failed", "--json").out)
    assert failed["attempts"] == 1
