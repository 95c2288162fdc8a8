"""Long work does not hang on one request: an id at once, the result when asked for (CQ18).

The server is the real process; nothing works on the job until the test does.
"""

import json
import time
from pathlib import Path

from app import assembly, liveness
from app.clock import utcnow
from app.settings import load
from tests.processes import wait_until
from tests.web import hands
from tests.web.site import Site, running

LARGE = 5_000_000


def test_cq18_the_id_comes_at_once_and_the_result_later(tmp_path: Path) -> None:
    with running(tmp_path) as site:
        begun = time.monotonic()
        status, headers, body = site.ask("POST", "/api/jobs?name=long.wav", b"RIFF" + bytes(LARGE))
        taken = json.loads(body)
        assert status == 201
        assert time.monotonic() - begun < 5, "the sender's patience, as of `curl -m 5`"
        address = headers["Location"]
        assert address == taken["status_url"] == f"/api/jobs/{taken['id']}"

        # The sender has gone. Who asks meanwhile is answered, and learns why nothing moves.
        waiting = site.json(address)
        assert (waiting["state"], waiting["text"]) == ("created", None)
        assert waiting["waiting_for"]["code"] == "no_worker"
        status, _, body = site.ask("GET", f"{address}/transcript.txt")
        assert (status, json.loads(body)["code"]) == (409, "not_done")

        work(site)
        done = site.json(address)
        assert (done["state"], done["text"]) == ("done", "Good morning.")
        for _ in range(2):  # it is kept, not handed out once
            assert site.ask("GET", done["links"]["txt"])[2].decode().strip() == "Good morning."


def test_cq18_a_sender_that_never_reads_the_answer_leaves_its_job(tmp_path: Path) -> None:
    with running(tmp_path) as site:
        body = b"RIFF" + bytes(1000)
        connection = site.dial()
        connection.sendall(
            b"POST /api/jobs?name=gone.wav HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: one\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        wait_until(lambda: len([*site.stored()]) == 1, what="it was taken in")
        connection.close()
        # Whoever was cut off asks again with the same key, and is given the same job.
        wait_until(lambda: _again(site, body) == 200, what="the job stands")
        work(site)
        status, _, answer = site.ask("POST", "/api/jobs?name=gone.wav", body, KEY)
        assert (status, site.json(json.loads(answer)["status_url"])["state"]) == (200, "done")


KEY = {"Idempotency-Key": "one"}


def _again(site: Site, body: bytes) -> int:
    return site.ask("POST", "/api/jobs?name=gone.wav", body, KEY)[0]


def work(site: Site) -> None:
    """What a worker would do with the one job, in another process than the server's."""
    settings = load({"PISAR_STORAGE__DATA_DIR": str(site.data_dir)})
    with assembly.opened(settings, liveness.COMMAND) as house:
        assert sum(house.queue.counts().values()) == 1
        hands.finish(house, utcnow())
