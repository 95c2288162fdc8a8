"""Stored files out: byte ranges, types, names, and who may have them."""

import pytest
from flask.testing import FlaskClient

from app.assembly import House
from app.job import Job
from app.web.download_name import LONGEST_BYTES, safe_name, stem
from tests.web import hands
from tests.web.conftest import Clock

DATA = b"OggS" + bytes(range(256)) * 4


@pytest.fixture
def job(house: House, clock: Clock) -> Job:
    made = hands.hand_in(house, clock(), DATA, "запись.ogg")
    hands.convert(house, clock())
    return house.queue.get(made.id)


def fetch(client: FlaskClient, url: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.get(url, headers=names) as answer:
        return answer.status_code, answer.data, dict(answer.headers)


@pytest.mark.parametrize(
    ("asked", "start", "stop"),
    [
        ("bytes=100-199", 100, 200),
        ("bytes=0-1", 0, 2),
        ("bytes=-1", len(DATA) - 1, len(DATA)),
        ("bytes=-999999", 0, len(DATA)),
        ("bytes=1000-", 1000, len(DATA)),
        ("bytes=1000-999999", 1000, len(DATA)),
        ("bytes=0-", 0, len(DATA)),
    ],
)
def test_cp21_a_range_is_served(
    client: FlaskClient, job: Job, asked: str, start: int, stop: int
) -> None:
    status, data, headers = fetch(client, f"/jobs/{job.id}/audio", Range=asked)
    assert status == 206 and data == DATA[start:stop]
    assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(DATA)}"
    assert headers["Content-Length"] == str(stop - start)
    assert headers["Content-Type"] == "audio/ogg"


def test_cp21_a_whole_file_says_that_it_has_parts(client: FlaskClient, job: Job) -> None:
    status, data, headers = fetch(client, f"/jobs/{job.id}/audio")
    assert status == 200 and data == DATA and headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize("asked", ["bytes=1028-", "bytes=5000-6000"])
def test_cp21_a_range_that_is_not_there_is_refused(
    client: FlaskClient, job: Job, asked: str
) -> None:
    status, data, headers = fetch(client, f"/jobs/{job.id}/audio", Range=asked, Accept="text/html")
    assert status == 416 and headers["Content-Range"] == f"bytes */{len(DATA)}"
    assert b"part that was asked for" in data


@pytest.mark.parametrize("asked", ["lines=1-2", "bytes=a-b", "bytes=5-2", "bytes=0-1,5-6", ""])
def test_cp21_a_range_that_makes_no_sense_gives_the_whole(
    client: FlaskClient, job: Job, asked: str
) -> None:
    assert fetch(client, f"/jobs/{job.id}/audio", Range=asked)[:2] == (200, DATA)


def test_cp21_a_range_of_another_version_gives_the_whole(client: FlaskClient, job: Job) -> None:
    url = f"/jobs/{job.id}/audio"
    etag = fetch(client, url)[2]["ETag"]
    assert fetch(client, url, Range="bytes=0-1", If_Range=etag)[0] == 206
    assert fetch(client, url, Range="bytes=0-1", If_Range='"other"')[:2] == (200, DATA)
    assert fetch(client, url, If_None_Match=etag)[:2] == (304, b"")


def test_head_tells_the_size_and_opens_nothing(client: FlaskClient, job: Job) -> None:
    answer = client.head(f"/jobs/{job.id}/audio")
    assert answer.status_code == 200 and answer.data == b""
    assert answer.headers["Content-Length"] == str(len(DATA))


def test_s10_a_file_needs_its_record_and_its_name(
    client: FlaskClient, house: House, job: Job
) -> None:
    file = house.queue.file(job.source_file)
    other = house.queue.file(job.file)
    assert fetch(client, f"/api/files/files/{file.id}/{file.file}")[:2] == (200, DATA)
    for url in (
        f"/api/files/files/{file.id}/x.ogg",
        f"/api/files/files/{other.id}/{file.file}",
        f"/api/files/files/xxxxxxxxxxxxxxx/{file.file}",
        f"/api/files/transcribe_jobs/{file.id}/{file.file}",
        f"/api/files/files/{file.id}/..%2f{file.id}%2f{file.file}",
        f"/api/files/files/{file.id}/%D1%8B",
    ):
        status, data, headers = fetch(client, url)
        assert status == 404 and headers["Content-Type"] == "application/problem+json", url
        assert file.file.encode() not in data


@pytest.mark.parametrize(
    "data", [b"<html><script>alert(1)</script>", b"<svg onload=alert(1)>", b"<?xml version='1.0'?>"]
)
def test_a_page_in_place_of_a_recording_is_only_saved(
    client: FlaskClient, house: House, clock: Clock, data: bytes
) -> None:
    made = hands.hand_in(house, clock(), data, "evil.html")
    file = house.queue.file(made.source_file)
    for url in (f"/api/files/files/{file.id}/{file.file}", f"/jobs/{made.id}/source"):
        _, _, headers = fetch(client, url)
        assert headers["Content-Type"] == "application/octet-stream"
        assert headers["Content-Disposition"].startswith("attachment;")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_a_source_that_is_gone_is_told(client: FlaskClient, house: House, job: Job) -> None:
    house.storage.delete(house.queue.file(job.source_file))
    status, data, _ = fetch(client, f"/jobs/{job.id}/source", Accept="text/html")
    assert status == 409 and "file is gone" in data.decode().replace("&#39;", "'")


def test_there_is_nothing_to_play_before_it_is_converted(
    client: FlaskClient, house: House, clock: Clock
) -> None:
    made = hands.hand_in(house, clock())
    assert fetch(client, f"/jobs/{made.id}/audio")[0] == 404


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("запись.ogg", "запись.ogg"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("...", "recording"),
        ("", "recording"),
        ("a\r\nb\0.ogg", "ab.ogg"),
        ("\u202egpj.ogg", "gpj.ogg"),
        ('a"b\\c.ogg', "a_b_c.ogg"),
    ],
)
def test_cu02_a_download_name_is_the_senders_made_harmless(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_cu02_a_long_name_keeps_its_extension() -> None:
    short = safe_name("ы" * 251 + ".ogg")
    assert short.endswith("ы.ogg") and len(short.encode()) <= LONGEST_BYTES
    assert stem("a.b.ogg") == "a.b" and stem("noext") == "noext" and stem(".ogg") == ".ogg"
