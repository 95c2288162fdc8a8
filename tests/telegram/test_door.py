"""The whole door: real processes before a Telegram of the test, killed at the worst moments."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from app.clock import utcnow
from app.job import Job
from app.queue.replies import Reason, Replies, ReplyState
from app.resources import ROOT
from app.telegram.status import NO_WORKER
from tests.service.house import service
from tests.speech import DATA
from tests.telegram.double import Telegram
from tests.telegram.front import bot_process, environment
from tests.telegram.post import Post, post

SECRET_PART = 1
DOUBTFUL = (ReplyState.DOUBTFUL, None)
SENT = (ReplyState.SENT, None)
SETTLED = (ReplyState.SENT, ReplyState.UNDELIVERED, ReplyState.DOUBTFUL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def metric(port: int, name: str) -> float | None:
    """A series of a process, None while it has none, or shows nothing yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
    except OSError:
        return None
    return next((float(line.split()[-1]) for line in lines if line.startswith(name)), None)


def owes(office: Post, telegram: Telegram, *names: str) -> list[Job]:
    """Ended jobs of people, whose texts are owed."""
    jobs = []
    for name in names:
        person = telegram.person(name)
        person.starts()
        jobs.append(office.takes(person.sends_voice(b"OggS")))
    telegram.network.updates.clear()
    for name in names:
        office.ends(f"Good morning, {name}.")
    return jobs


@pytest.mark.engine
def test_a_voice_message_comes_back_as_its_text(tmp_path: Path, telegram: Telegram) -> None:
    data_dir = tmp_path / "data"
    with service(data_dir) as house, bot_process(data_dir, telegram) as bot:
        house.start_worker()
        alpha = telegram.person("Alpha", language="ru")
        alpha.starts()
        message = alpha.sends_voice(DATA / "english-phone.wav")
        telegram.waits_for(
            lambda: any(
                answer.buttons == ["srt", "txt"] for answer in alpha.chat.answers_to(message)
            ),
            "the text as a reply",
            120,
        )
        text = alpha.chat.answers_to(message)[-1]
        assert len(text.text.split()) > 3
        telegram.waits_for(lambda: alpha.chat.answers_to(message) == [text], "its state is gone")
        alpha.presses(text, "srt")
        telegram.waits_for(
            lambda: any(" --> " in (found.data or b"").decode() for found in alpha.chat.from_bot),
            "the subtitles",
        )
        assert bot.stop() == 0
    assert len(telegram.journal.calls("getFile")) == 1
    assert not telegram.journal.refusals()


def test_p47_hazard_19_a_bot_killed_between_the_end_and_the_reply_sends_none_twice(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir = tmp_path / "data"
    with post(data_dir, telegram) as office:
        jobs = owes(office, telegram, "Gamma", "Beta")
        gate = telegram.faults.hold("sendMessage", after=True)
        with bot_process(data_dir, telegram) as bot:
            gate.wait_reached()
            bot.kill()
        gate.let_go()
        assert office.fate(jobs[0])[0] is ReplyState.SENDING
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(lambda: office.fate(jobs[1]) == SENT, bot.log)
            telegram.waits_for(lambda: office.fate(jobs[0]) == DOUBTFUL, bot.log)
            assert bot.stop() == 0
    assert len(telegram.journal.calls("sendMessage")) == 2


def test_ct10_a_bot_killed_while_it_acknowledges_does_not_do_so_twice(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir = tmp_path / "data"
    alpha = telegram.person("Alpha")
    message = alpha.sends_voice(b"OggS" + bytes(200))
    # It is said in another thread than the recording is taken in, so both must have come.
    gate = telegram.faults.hold("sendMessage", after=True, arguments={"text": NO_WORKER})
    with bot_process(data_dir, telegram) as bot:
        gate.wait_reached(60)
        bot.kill()
    gate.let_go()
    with bot_process(data_dir, telegram) as bot, post(data_dir, telegram) as office:
        # Told of after the first one, would that be told of again.
        beta = telegram.person("Beta")
        beta.sends_voice(b"OggS" + bytes(200))
        telegram.waits_for(lambda: NO_WORKER in beta.chat.texts, bot.log, 60)
        office.ends("Good morning.")
        telegram.waits_for(lambda: "Good morning." in alpha.chat.texts, bot.log, 60)
    assert [answer.text for answer in alpha.chat.answers_to(message)] == [
        NO_WORKER,
        "Good morning.",
    ]


def test_p47_a_bot_killed_between_two_parts_leaves_what_was_sent_on_record(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir = tmp_path / "data"
    with post(data_dir, telegram) as office:
        alpha = telegram.person("Alpha")
        alpha.starts()
        job = office.takes(alpha.sends_voice(b"OggS"))
        telegram.network.updates.clear()
        office.ends("A sentence of a long talk. " * 400)
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(lambda: len(alpha.chat.texts) >= 1, bot.log)
            gate = telegram.faults.hold("sendMessage")
            gate.wait_reached()
            bot.kill()
        gate.let_go()
        (reply,) = office.replies.of_job(job.id)
        assert reply.parts_sent >= 1
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(lambda: office.fate(job) == DOUBTFUL, bot.log)
            office.replies.send_again(job.id, utcnow())
            telegram.waits_for(lambda: office.fate(job) == SENT, bot.log)


def test_p27_no_such_bot_stops_the_start_and_pisar_up(tmp_path: Path, telegram: Telegram) -> None:
    telegram.is_revoked = True
    data_dir = tmp_path / "data"
    with bot_process(data_dir, telegram) as bot:
        assert bot.process.wait(60) == 78
        assert "set telegram.token anew" in bot.log
    ports = {
        "SERVER__PORT": str(free_port()),
        "SERVER__METRICS_PORT": "0",
        "WORKER__METRICS_PORT": "0",
    }
    up = subprocess.run(
        [sys.executable, "-m", "app", "up"],
        cwd=ROOT,
        env=environment(data_dir, telegram, **ports),
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert up.returncode == 78
    assert telegram.token.split(":")[SECRET_PART] not in up.stderr + up.stdout


def test_p27_an_unreachable_telegram_is_waited_for_and_taken_when_it_comes(
    tmp_path: Path, telegram: Telegram
) -> None:
    telegram.goes_down()
    port = free_port()
    gauge = 'transcriber_intake_up{intake="telegram"}'
    with bot_process(tmp_path, telegram, TELEGRAM__METRICS_PORT=str(port)) as bot:
        telegram.waits_for(lambda: metric(port, gauge) == 0.0, "the gauge is there", 60)
        telegram.comes_up()
        telegram.waits_for(lambda: metric(port, gauge) == 1.0, "the gauge is up", 60)
        assert bot.stop() == 0


def test_p24_what_is_owed_while_telegram_was_never_reached_is_intake_down(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir = tmp_path / "data"
    with post(data_dir, telegram) as office:
        (job,) = owes(office, telegram, "Gamma")
        telegram.goes_down()
        with bot_process(data_dir, telegram, TELEGRAM__DELIVERY_WAIT="1") as bot:
            telegram.waits_for(
                lambda: office.fate(job) == (ReplyState.UNDELIVERED, Reason.INTAKE_DOWN),
                bot.log,
                60,
            )
            assert '"reason": "intake_down"' in bot.log
        telegram.comes_up()


def test_p47_a_restart_within_the_wait_loses_no_reply(tmp_path: Path, telegram: Telegram) -> None:
    data_dir = tmp_path / "data"
    with post(data_dir, telegram) as office:
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(lambda: telegram.journal.calls("getUpdates"), bot.log, 60)
            bot.kill()
        (job,) = owes(office, telegram, "Gamma")
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(lambda: office.fate(job) == SENT, bot.log, 60)


@pytest.mark.parametrize("method", ["*", "sendMessage"])
def test_p44_a_bot_before_a_silent_telegram_stops_in_time(
    tmp_path: Path, telegram: Telegram, method: str
) -> None:
    data_dir = tmp_path / "data"
    with post(data_dir, telegram) as office:
        owes(office, telegram, "Gamma")
        fault = telegram.faults.silence(method, times=None)
        more = {"TELEGRAM__REQUEST_TIMEOUT": "60", "SERVER__FORCE_SHUTDOWN_TIMEOUT": "3"}
        with bot_process(data_dir, telegram, **more) as bot:
            asked = "getMe" if method == "*" else method
            telegram.waits_for(lambda: telegram.journal.calls(asked), bot.log, 60)
            begun = time.monotonic()
            bot.stop()
            assert time.monotonic() - begun < 3 + 5
        telegram.faults.call_off(fault)


def test_p29_ct08_the_canary_is_in_no_log_metric_or_database(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir, port = tmp_path / "data", free_port()
    secret = telegram.token.split(":")[SECRET_PART]
    with post(data_dir, telegram) as office:
        jobs = owes(office, telegram, "Gamma", "Beta", "Delta")
        alpha = telegram.person("Alpha")
        alpha.starts()
        alpha.sends_voice(b"OggS" + bytes(100))
        for order in ("page", "reset", "garbage", "cut_off", "silence", "flood"):
            getattr(telegram.faults, order)("sendMessage")
        # Each of these makes the bot pause for longer, so there are few of them.
        for name, order in {"getMe": "reset", "getUpdates": "garbage", "getFile": "page"}.items():
            getattr(telegram.faults, order)(name)
        telegram.faults.reset("file")
        telegram.faults.refuse(400, f"Bad Request: {telegram.token}", "sendMessage")
        more = {
            "LOG__LEVEL": "DEBUG",
            "TELEGRAM__METRICS_PORT": str(port),
            "TELEGRAM__REQUEST_TIMEOUT": "1",
            "TELEGRAM__UPDATE_TIMEOUT": "1",
        }
        with bot_process(data_dir, telegram, **more) as bot:
            telegram.waits_for(
                lambda: all(office.fate(job)[0] in SETTLED for job in jobs), bot.log, 90
            )
            telegram.waits_for(lambda: metric(port, "transcriber_intake_up") == 1.0, bot.log, 90)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as page:
                shown = page.read().decode()
            bot.stop()
        assert secret not in shown
        assert secret not in bot.log
        for path in data_dir.rglob("*"):
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path.name


def test_a_reply_that_the_owner_sends_again_goes_out_by_itself(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir = tmp_path / "data"
    with post(data_dir, telegram) as office:
        (job,) = owes(office, telegram, "Gamma")
        telegram.faults.refuse(403, "Forbidden: bot was blocked by the user", "sendMessage")
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(
                lambda: office.fate(job) == (ReplyState.UNDELIVERED, Reason.REJECTED), bot.log, 60
            )
            Replies(office.house.database, office.house.name).send_again(job.id, utcnow())
            telegram.waits_for(lambda: office.fate(job) == SENT, bot.log, 60)


def test_q20_killed_again_and_again_the_bot_sends_nothing_twice_and_forgets_nothing(
    tmp_path: Path, telegram: Telegram
) -> None:
    data_dir = tmp_path / "data"
    names = [f"Person {number}" for number in range(30)]
    with post(data_dir, telegram) as office:
        jobs = owes(office, telegram, *names)
        for more in (3, 1, 6, 2):
            seen = len(telegram.journal.calls("sendMessage")) + more
            with bot_process(data_dir, telegram) as bot:
                telegram.waits_for(
                    lambda seen=seen: len(telegram.journal.calls("sendMessage")) >= seen,  # type: ignore[misc]
                    bot.log,
                    60,
                )
                bot.kill()
        with bot_process(data_dir, telegram) as bot:
            telegram.waits_for(
                lambda: all(office.fate(job)[0] in SETTLED for job in jobs), bot.log, 60
            )
        fates = [office.fate(job) for job in jobs]
    said = [call.arguments["text"] for call in telegram.journal.done("sendMessage")]
    assert len(said) == len(set(said)), "a reply came twice"
    assert set(fates) <= {SENT, DOUBTFUL}
    assert fates.count(DOUBTFUL) <= 4
    for name, fate in zip(names, fates, strict=True):
        assert fate == DOUBTFUL or f"Good morning, {name}." in said
