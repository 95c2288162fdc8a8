"""The real server: what it refuses and how early, and who waits for whom."""

import fcntl
import json
import logging
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.migrate import open_database
from app.owners import Owners, Scope
from app.settings import Panel
from app.web.channel import Channel
from app.web.guard import HEADERS
from tests.processes import wait_until
from tests.web.hands import sound
from tests.web.site import COMMAND, Site, read_answer, running

MIB = 1024**2
LIMIT = 24 * MIB
TOO_LARGE = LIMIT + 10 * MIB
FORM_HEAD = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
    b"Content-Type: audio/wav\r\n\r\n"
)
FORM_TAIL = b"\r\n--x--\r\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that takes recordings up to the limit from everybody."""
    with running(tmp_path_factory.mktemp("site"), PISAR_INTAKE__MAX_SIZE=str(LIMIT)) as site:
        yield site


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that takes recordings from those only whom the owner lets."""
    with running(tmp_path_factory.mktemp("closed"), PISAR_INTAKE__AUTH="token") as site:
        yield site


def head(path: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


def send_for(connection: socket.socket, total: int, *, chunked: bool = False) -> int:
    """Send up to so many bytes of body; gives how many the server let through."""
    block = b"x" * 65536
    wire = b"10000\r\n" + block + b"\r\n" if chunked else block
    sent = 0
    while sent < total:
        connection.sendall(wire)
        sent += len(block)
    return sent


def test_a_recording_goes_in_by_form_and_by_body(site: Site) -> None:
    form = FORM_HEAD + sound() + FORM_TAIL
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert site.ask("POST", "/api/jobs", form, kind)[0] == 201
    status, headers, body = site.ask("POST", "/api/jobs?name=a.wav", sound())
    assert status == 201
    assert site.json(headers["Location"])["id"] == json.loads(body)["id"]


def test_a_chunked_body_is_a_recording(site: Site) -> None:
    with site.dial() as connection:
        connection.sendall(head("/api/jobs", "Transfer-Encoding: chunked", "Connection: close"))
        data = sound()
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data))
        assert read_answer(connection).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01 no HTTP at all\r\n\r\n", 400),
        (head("/api/jobs", "Content-Length: canary"), 400),
        (head("/api/jobs", "Transfer-Encoding: chunked") + b"canary\r\n\r\n", 400),
        (head("/api/jobs", "Transfer-Encoding: gzip"), 501),
        (head("/api/jobs", "X-Canary: " + "y" * 300_000), 431),
    ],
    ids=["noise", "length", "chunk", "encoding", "headers"],
)
def test_what_is_not_http_is_refused_in_our_own_form(
    site: Site, request_: bytes, status: int
) -> None:
    with site.dial() as connection:
        connection.sendall(request_)
        said, _, body = read_answer(connection).partition(b"\r\n\r\n")
    assert said.split()[1] == str(status).encode()
    answer = json.loads(body)
    assert (answer["status"], answer["code"]) == (status, "bad_request")
    lines = said.decode().lower().split("\r\n")
    assert "content-type: application/problem+json" in lines and "connection: close" in lines
    assert {line.partition(":")[0] for line in lines} >= {name.lower() for name in HEADERS}
    assert b"canary" not in body


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl: apt-get install curl")
@pytest.mark.parametrize("expect", ["Expect: 100-continue", "Expect:"])
@pytest.mark.parametrize("is_form", [True, False])
def test_cu03_curl_reads_a_413_as_json(
    site: Site, tmp_path: Path, expect: str, is_form: bool
) -> None:
    big = tmp_path / "big.wav"
    with big.open("wb") as file:
        file.truncate(TOO_LARGE)
    body = ["-F", f"file=@{big}"] if is_form else ["--data-binary", f"@{big}"]
    done = subprocess.run(
        ["curl", "-sS", "-i", "-H", expect, *body, f"{site.url}/api/jobs"],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said, _, answer = done.stdout.partition(b"\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 413 ") and b"application/problem+json" in said
    assert json.loads(answer)["code"] == "too_large"


def test_cu03_a_sender_that_reads_only_at_the_end_gets_the_413(site: Site) -> None:
    # What a browser does: it sends the whole body, then looks for the answer. A server that
    # closes at once makes that a connection reset.
    size = TOO_LARGE
    with site.dial() as connection:
        connection.sendall(head("/api/jobs", f"Content-Length: {size}"))
        assert send_for(connection, size) == size
        said = read_answer(connection)
    assert said.startswith(b"HTTP/1.1 413 ") and b'"too_large"' in said
    assert b"Connection: close" in said


def test_cu03_a_form_gets_a_413_that_a_person_can_read(site: Site) -> None:
    size = TOO_LARGE
    with site.dial() as connection:
        lines = (f"Content-Length: {size}", "Accept: text/html", "Sec-Fetch-Site: same-origin")
        connection.sendall(head("/", "Content-Type: multipart/form-data; boundary=x", *lines))
        send_for(connection, size)
        said = read_answer(connection).decode()
    assert said.startswith("HTTP/1.1 413 ") and "text/html" in said
    assert "The file is larger than this service takes." in said
    assert "Content-Security-Policy" in said


@pytest.mark.parametrize("path", ["/api/jobs", "/"])
def test_cu03_the_413_comes_before_the_body(site: Site, path: str) -> None:
    with site.dial() as connection:
        connection.sendall(head(path, f"Content-Length: {9 * 1024**3}", "Expect: 100-continue"))
        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("path", ["/login", "/api/jobs/x/cancel", "/nothing", "/api/jobs/"])
def test_s13_only_the_intake_takes_large_bodies(site: Site, path: str) -> None:
    with site.dial() as connection:
        connection.sendall(head(path, f"Content-Length: {2 * MIB}", "Expect: 100-continue"))
        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")


def test_s13_a_chunked_body_that_grows_too_large_is_refused(site: Site) -> None:
    with site.dial() as connection:
        connection.sendall(head("/login", "Transfer-Encoding: chunked"))
        send_for(connection, 2 * MIB, chunked=True)
        assert read_answer(connection).startswith(b"HTTP/1.1 413 ")
    with site.dial() as connection:
        connection.sendall(head("/api/jobs", "Transfer-Encoding: chunked"))
        send_for(connection, TOO_LARGE, chunked=True)
        assert b'"too_large"' in read_answer(connection)
    wait_until(lambda: site.unnamed_bytes() < MIB, what="the refused bodies are gone")


def test_s13_one_byte_more_than_allowed_is_refused_and_leaves_nothing(site: Site) -> None:
    before = site.stored()
    assert site.ask("POST", "/api/jobs", b"x" * (LIMIT + 1))[0] == 413
    assert site.stored() == before
    assert site.ask("POST", "/api/jobs", b"x" * LIMIT)[0] == 201


def test_what_follows_a_refused_head_is_not_a_request(site: Site) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with site.dial() as connection:
        connection.sendall(head("/login", f"Content-Length: {2 * MIB}") + smuggled * 3)
        connection.shutdown(socket.SHUT_WR)
        said = read_answer(connection)
    assert said.count(b"HTTP/1.1 ") == 1, said


def test_an_invited_body_is_invited(site: Site) -> None:
    data = sound()
    with site.dial() as connection:
        lines = (f"Content-Length: {len(data)}", "Expect: 100-continue", "Connection: close")
        connection.sendall(head("/api/jobs", *lines))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue")
        connection.sendall(data)
        assert read_answer(connection).startswith(b"HTTP/1.1 201 ")


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("X-None: 1", b"token_required"),
        ("Authorization: Bearer pisar_nope", b"bad_token"),
        ("Cookie: pisar=nope", b"token_required"),
    ],
)
def test_i07_who_may_not_hand_in_is_told_before_the_body(
    closed: Site, header: str, code: bytes
) -> None:
    with closed.dial() as connection:
        lines = (f"Content-Length: {6 * 1024**3}", "Expect: 100-continue", header)
        connection.sendall(head("/api/jobs", *lines))
        said = read_answer(connection)
    assert said.startswith(b"HTTP/1.1 401 ") and b'"' + code + b'"' in said
    assert b"www-authenticate: bearer" in said.lower()


def test_i07_a_token_opens_the_gate_for_its_scope_only(closed: Site) -> None:
    now = datetime.now(UTC)
    database = open_database(closed.data_dir, now)
    tokens = Owners(database, Panel()).tokens
    _, intake = tokens.create("in", {Scope.INTAKE}, now)
    _, read = tokens.create("out", {Scope.READ}, now)
    database.close()
    bearer = {"Authorization": f"Bearer {intake}"}
    assert closed.ask("POST", "/api/jobs", sound(), bearer)[0] == 201
    bearer = {"Authorization": f"Bearer {read}"}
    assert closed.ask("POST", "/api/jobs", sound(), bearer)[0] == 403


def test_s31_a_sender_that_goes_away_leaves_nothing(site: Site) -> None:
    before = site.stored()
    with site.dial() as connection:
        lines = ("Content-Length: 4000000", "Content-Type: multipart/form-data; boundary=x")
        connection.sendall(head("/api/jobs", *lines) + FORM_HEAD)
        send_for(connection, 3_000_000)
        wait_until(lambda: site.unnamed_bytes() > 2_000_000, what="the body waits on our disk")
    wait_until(lambda: site.unnamed_bytes() == 0, what="the half body is gone")
    assert site.stored() == before


def test_q13_slow_senders_and_slow_listeners_hold_no_thread(site: Site) -> None:
    # More than waitress keeps in memory of an answer before it makes the thread wait.
    data = b"OggS" + bytes(LIMIT - 4)
    made = json.loads(site.ask("POST", "/api/jobs?name=a.ogg", data)[2])
    with ExitStack() as stack:
        for _ in range(12):
            sender = stack.enter_context(site.dial())
            sender.sendall(head("/api/jobs", "Content-Length: 1000000") + b"x" * 1000)
            listener = stack.enter_context(site.dial())
            ask = f"GET /jobs/{made['id']}/source HTTP/1.1\r\nHost: localhost\r\n"
            listener.sendall(f"{ask}Range: bytes=100-\r\n\r\n".encode())
            assert listener.recv(100).startswith(b"HTTP/1.1 206 ")
        started = time.monotonic()
        assert site.ask("GET", "/healthz")[0] == 200
        assert time.monotonic() - started < 5


def test_cp21_a_range_comes_through_the_server_byte_for_byte(site: Site) -> None:
    data = b"OggS" + bytes(range(256)) * 1000
    made = json.loads(site.ask("POST", "/api/jobs?name=a.ogg", data)[2])
    url = f"/jobs/{made['id']}/source"
    for asked, part in (
        ("bytes=100-199", data[100:200]),
        ("bytes=-1", data[-1:]),
        ("bytes=5000-", data[5000:]),
    ):
        status, headers, body = site.ask("GET", url, headers={"Range": asked})
        assert (status, body) == (206, part) and headers["Content-Length"] == str(len(part))
    assert site.ask("GET", url)[2] == data
    status, headers, body = site.ask("HEAD", url)
    assert (status, body, headers["Content-Length"]) == (200, b"", str(len(data)))


def test_cp15_metrics_have_no_paths_and_a_port_of_their_own(site: Site) -> None:
    for number in range(600):
        path = f"/jobs/canary{number}" if number % 2 else f"/canary/{number}"
        site.ask("GET", path)
    site.ask("GET", "/api/files/files/canaryrecord/canary-name.ogg")
    assert site.ask("GET", "/metrics")[0] == 404
    status, _, body = site.ask("GET", "/metrics", port=site.metrics_port)
    text = body.decode()
    assert status == 200 and "canary" not in text
    assert 'url_rule="/jobs/<job_id>"' in text
    assert len([line for line in text.splitlines() if not line.startswith("#")]) < 300
    assert 'transcriber_intake_up{intake="http"} 1.0' in text


def test_s10_no_stored_name_reaches_the_log(site: Site) -> None:
    name = "0b1cafe0-dead-4bee-8f00-canarycanary.ogg"
    site.ask("GET", f"/api/files/files/xxxxxxxxxxxxxxx/{name}")
    with site.dial() as connection:
        connection.sendall(f"GET /api/files/files/x/{name} HTTP/1.1\r\n\r\n".encode())
    assert name not in site.log.read_text()


@pytest.mark.parametrize("words", ["Client disconnected", "Exception"])
def test_s10_the_servers_own_messages_lose_their_path(
    words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=Channel.logger.name):
        Channel.logger.info(f"{words} while serving /api/files/files/x/canary.ogg")
    assert "canary" not in caplog.text and words in caplog.text


def test_no_secret_reaches_the_log(closed: Site) -> None:
    secrets = ("pisar_canarytoken", "canarycookie", "canarypassword", "canaryinvitation")
    bearer = {"Authorization": f"Bearer {secrets[0]}"}
    closed.ask("POST", "/api/jobs", sound(), bearer)
    closed.ask("GET", "/jobs", headers={"Cookie": f"pisar={secrets[1]}"})
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    closed.ask("POST", "/login", f"name=scribe&password={secrets[2]}".encode(), form)
    words = f"invitation={secrets[3]}&name=scribe&password={secrets[2]}"
    assert closed.ask("POST", "/setup", words.encode(), form)[0] == 410
    log = closed.log.read_text()
    assert not [secret for secret in secrets if secret in log]


def test_readyz_lists_what_is_missing(site: Site) -> None:
    status, _, body = site.ask("GET", "/readyz")
    assert status == 503 and json.loads(body)["reasons"] == ["no_worker"]


def test_hazard_18_readyz_tells_that_nobody_can_write(site: Site) -> None:
    lock = os.open(site.data_dir / "pisar.db.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        status, _, body = site.ask("GET", "/readyz")
    finally:
        os.close(lock)
    assert status == 503 and "database_busy" in json.loads(body)["reasons"]


def test_q27_the_stop_waits_for_what_is_in_hand(tmp_path: Path) -> None:
    with running(tmp_path) as site, site.dial() as idle, site.dial() as busy:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(100).startswith(b"HTTP/1.1 200 ")
        data = sound()
        busy.sendall(head("/api/jobs", f"Content-Length: {len(data)}"))
        busy.sendall(data[:50])
        wait_until(lambda: _is_half_received(site), what="the server has the half")
        site.process.terminate()
        wait_until(lambda: _refuses(site), what="no new connection is taken")
        busy.sendall(data[50:])
        assert busy.recv(100).startswith(b"HTTP/1.1 201 ")
        assert site.process.wait(10) == 0
        assert not list((site.data_dir / "tmp").iterdir())


def test_q27_a_request_that_hangs_does_not_hold_the_stop(tmp_path: Path) -> None:
    with running(tmp_path, PISAR_SERVER__SHUTDOWN_TIMEOUT="1") as site, site.dial() as hanging:
        hanging.sendall(head("/api/jobs", "Content-Length: 1000") + b"x")
        started = time.monotonic()
        assert site.stop() == 0
        assert time.monotonic() - started < 5


def test_s13_a_silent_connection_is_dropped_and_a_slow_one_is_not(tmp_path: Path) -> None:
    idle = running(tmp_path, PISAR_SERVER__IDLE_TIMEOUT="2")
    with idle as site, site.dial() as silent, site.dial() as slow:
        data = sound()
        for connection in (silent, slow):
            connection.sendall(head("/api/jobs", f"Content-Length: {len(data)}"))
        silent.settimeout(0.5)
        for at in range(0, len(data), 10):
            slow.sendall(data[at : at + 10])
            if _is_closed(silent):
                break
        else:
            pytest.fail("the silent connection was not dropped")
        slow.sendall(data[at + 10 :])
        assert slow.recv(100).startswith(b"HTTP/1.1 201 ")


def test_s13_a_recording_of_8_gib_is_invited_and_no_more(tmp_path: Path) -> None:
    with running(tmp_path) as site:
        largest = 8 * 1024**3
        with site.dial() as connection:
            lines = (f"Content-Length: {largest}", "Expect: 100-continue")
            connection.sendall(head("/api/jobs", *lines))
            assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue")
        with site.dial() as connection:
            lines = (f"Content-Length: {largest + MIB + 1}", "Expect: 100-continue")
            connection.sendall(head("/api/jobs", *lines))
            assert read_answer(connection).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_proxy_speaks_for_its_clients_only_when_trusted(tmp_path: Path, is_trusted: bool) -> None:
    forwarded = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": "https://pisar.example",
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Host": "pisar.example",
        "X-Forwarded-Proto": "https",
    }
    with running(tmp_path, PISAR_SERVER__TRUSTED_PROXY="127.0.0.1" if is_trusted else "") as site:
        status = site.ask("POST", "/login", b"name=a&password=b", forwarded)[0]
    assert status == (401 if is_trusted else 403)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MiB."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine does not let us mount a small disk")
    try:
        yield folder
    finally:
        # Lazily: a test that failed may still hold a file open on it.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_q22_a_full_disk_is_told_and_passes(tmp_path: Path, small_disk: Path) -> None:
    with running(tmp_path) as site:
        size = 12 * MIB
        with site.dial() as connection:
            connection.sendall(head("/api/jobs", f"Content-Length: {size}"))
            send_for(connection, size)
            said = read_answer(connection)
        assert said.startswith(b"HTTP/1.1 507 ") and b'"disk_full"' in said
        wait_until(lambda: site.unnamed_bytes() == 0, what="the half body is gone")
        assert site.ask("POST", "/api/jobs", sound())[0] == 201


def test_a_taken_port_is_told_in_one_line(tmp_path: Path, site: Site) -> None:
    env = site.env | {"PISAR_STORAGE__DATA_DIR": str(tmp_path), "PISAR_SERVER__METRICS_PORT": "0"}
    done = subprocess.run(COMMAND, env=env, capture_output=True, check=False, timeout=30)
    assert done.returncode == 1
    assert b"set server.port to a free one" in done.stderr and b"Traceback" not in done.stderr


def _is_half_received(site: Site) -> bool:
    # Nothing outside tells: the kernel's queue of the connection is empty once it was read.
    rows = Path(f"/proc/{site.process.pid}/net/tcp").read_text().splitlines()[1:]
    mine = [row.split() for row in rows if row.split()[1].endswith(f":{site.port:04X}")]
    return all(row[4].endswith(":00000000") for row in mine if row[3] == "01")


def _refuses(site: Site) -> bool:
    try:
        site.dial(1).close()
    except OSError:
        return True
    return False


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
