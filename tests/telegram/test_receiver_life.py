"""The receiver's life: whatever Telegram and the machine do, nothing that was sent is lost."""

import errno
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app import metrics
from app.chats import JobMessages, Trouble
from app.clock import utcnow
from app.errors import AppError
from app.storage.local import LocalDraft
from app.telegram import receiver, talk
from app.telegram.errors import NoSuchBot
from tests.processes import wait_until
from tests.telegram.double import Telegram
from tests.telegram.front import OGG, BotProcess, bot_process, front


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    # Tests ask again sooner than the original lets.
    with Telegram(slows_hasty=False) as double:
        yield double


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of tenths of a second instead of a minute."""
    monkeypatch.setattr(receiver, "PAUSE_CAP_SECONDS", 0.2)


def gauge() -> float:
    return float(metrics.intake_up.labels(intake="telegram")._value.get())


class TestStart:
    def test_p27_no_such_bot_ends_the_receiver(self, telegram: Telegram, data_dir: Path) -> None:
        telegram.is_revoked = True
        with front(data_dir, telegram) as bot:
            wait_until(lambda: bot.ended_by is not None, 20, "the receiver ends")
            assert isinstance(bot.ended_by, NoSuchBot)
            assert gauge() == 0

    def test_p27_unreachable_at_the_start_comes_up_by_itself(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        telegram.goes_down()
        with front(data_dir, telegram) as bot:
            wait_until(lambda: bot.receiver._trouble is Trouble.UNREACHABLE, 20, "it is noticed")
            assert gauge() == 0
            assert not bot.receiver.is_up.is_set()
            telegram.comes_up()
            telegram.person("Alpha").sends_voice(OGG)
            bot.waits_for_jobs(1)
            assert gauge() == 1
            assert bot.receiver.is_up.is_set()
        assert gauge() == 0

    @pytest.mark.parametrize("fault", ["silence", "reset", "page", "garbage", "cut_off", "flood"])
    def test_p28_q25_a_start_that_meets_a_fault_is_bounded(
        self, telegram: Telegram, data_dir: Path, fault: str
    ) -> None:
        getattr(telegram.faults, fault)("getMe")
        with front(data_dir, telegram, TELEGRAM__REQUEST_TIMEOUT="0.5") as bot:
            telegram.person("Alpha").sends_voice(OGG)
            bot.waits_for_jobs(1)

    def test_a_webhook_that_somebody_left_is_taken_away(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        with front(data_dir, telegram) as bot:
            wait_until(bot.receiver.is_up.is_set, 20, "it is up")
        assert telegram.journal.done("deleteWebhook")

    def test_a_menu_that_telegram_refuses_stops_nothing(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        telegram.faults.refuse(400, "Bad Request: no menu", "setMyCommands", times=None)
        with front(data_dir, telegram) as bot:
            telegram.person("Alpha").sends_voice(OGG)
            bot.waits_for_jobs(1)


class TestTrouble:
    @pytest.mark.parametrize("fault", ["silence", "reset", "page", "garbage", "cut_off", "flood"])
    def test_ct18_q25_a_fault_of_the_news_loses_nothing(
        self, telegram: Telegram, data_dir: Path, fault: str
    ) -> None:
        with front(data_dir, telegram, TELEGRAM__UPDATE_TIMEOUT="1") as bot:
            alpha = telegram.person("Alpha")
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(1)
            more = {"retry_after": 1} if fault == "flood" else {}
            getattr(telegram.faults, fault)("getUpdates", times=2, **more)
            alpha.sends_voice(OGG)
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(3)
            bot.waits_until_idle()
            wait_until(lambda: gauge() == 1, 20, "it is up again")

    @pytest.mark.parametrize("method", ["getFile", "file"])
    @pytest.mark.parametrize("fault", ["silence", "reset", "page", "garbage", "cut_off", "flood"])
    def test_q25_a_fault_of_a_file_loses_nothing(
        self, telegram: Telegram, data_dir: Path, method: str, fault: str
    ) -> None:
        more = {"retry_after": 1} if fault == "flood" else {}
        getattr(telegram.faults, fault)(method, **more)
        with front(data_dir, telegram, TELEGRAM__REQUEST_TIMEOUT="0.5") as bot:
            telegram.person("Alpha").sends_voice(OGG)
            bot.waits_for_jobs(1)
            bot.waits_until_idle()
            (job,) = bot.jobs()
            with bot.house.storage.open(bot.house.queue.file(job.source_file)) as stored:
                assert stored.read() == OGG
            assert list(bot.house.scratch.iterdir()) == []

    def test_a_file_that_never_comes_is_told_and_stops_nobody(
        self, telegram: Telegram, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(talk, "FETCH_TRIES", 3)
        telegram.faults.refuse(
            400,
            "Bad Request: wrong file_id or the file is temporarily unavailable",
            "getFile",
            times=3,
        )
        with front(data_dir, telegram) as bot:
            alpha = telegram.person("Alpha")
            first = alpha.sends_voice(OGG)
            telegram.waits_for(lambda: alpha.chat.answers_to(first), "an answer")
            second = alpha.sends_voice(OGG)
            (job,) = bot.waits_for_jobs(1)
            assert job.tg_reply_message_id == second.id
            assert alpha.chat.texts == ["Telegram did not hand me the file. Please send it again."]

    def test_ct09_another_poller_is_told_once_and_waited_out(
        self, telegram: Telegram, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        conflict = telegram.faults.refuse(
            409, "Conflict: terminated by other getUpdates request", "getUpdates", times=None
        )
        with front(data_dir, telegram) as bot:
            alpha = telegram.person("Alpha")
            alpha.sends_voice(OGG)
            telegram.waits_for(lambda: len(telegram.journal.calls("getUpdates")) > 8, "tries")
            stored = bot.bots.newest()
            assert stored and stored.trouble is Trouble.CONFLICT
            telegram.faults.call_off(conflict)
            bot.waits_for_jobs(1)
            bot.waits_until_idle()
            wait_until(lambda: gauge() == 1, 20, "it is up again")
            stored = bot.bots.newest()
            assert stored and stored.trouble is None
        told = [record for record in caplog.records if "another program" in record.getMessage()]
        assert len(told) == 1

    def test_ct09_a_webhook_set_while_we_run_is_taken_away(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        with front(data_dir, telegram) as bot:
            wait_until(bot.receiver.is_up.is_set, 20, "it is up")
            with telegram.network.lock:
                telegram.network.updates.has_webhook = True
            telegram.person("Alpha").sends_voice(OGG)
            bot.waits_for_jobs(1)

    def test_a_token_revoked_while_we_run_is_trouble_and_no_end(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        with front(data_dir, telegram) as bot:
            wait_until(bot.receiver.is_up.is_set, 20, "it is up")
            telegram.is_revoked = True
            wait_until(lambda: bot.receiver._trouble is Trouble.REFUSED, 20, "it is noticed")
            telegram.is_revoked = False
            telegram.person("Alpha").sends_voice(OGG)
            bot.waits_for_jobs(1)

    def test_q22_a_full_disk_holds_what_is_sent_until_there_is_room(
        self, telegram: Telegram, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: LocalDraft, data: bytes, /) -> int:
            raise AppError("disk_full", errno.errorcode[errno.ENOSPC])

        with front(data_dir, telegram) as bot:
            with monkeypatch.context() as patch:
                patch.setattr(LocalDraft, "write", full)
                alpha = telegram.person("Alpha")
                sent = [alpha.sends_voice(OGG + bytes([number])) for number in range(3)]
                calls = telegram.journal.calls
                telegram.waits_for(lambda: len(calls("getFile")) > 8, "it is tried again")
                assert gauge() == 0
                assert not bot.is_idle()
            jobs = bot.waits_for_jobs(3)
            assert [job.tg_reply_message_id for job in jobs] == [item.id for item in sent]
            bot.waits_until_idle()
            wait_until(lambda: gauge() == 1, 20, "it is up again")
            assert alpha.chat.texts == []

    def test_ct12_twenty_malformed_updates_between_two_good_voices(
        self, telegram: Telegram, data_dir: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        alpha = telegram.person("Alpha")
        alpha.sends_voice(OGG)
        for body in MALFORMED:
            telegram.tells(body)
        alpha.sends_voice(OGG)
        with front(data_dir, telegram) as bot:
            bot.waits_for_jobs(2)
            bot.waits_until_idle()
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(3)
        told = [record for record in caplog.records if "cannot be read" in record.getMessage()]
        assert 10 <= len(told) <= len(MALFORMED)
        assert "canary" not in caplog.text

    def test_an_error_nobody_foresaw_is_logged_told_and_passed_by(
        self,
        telegram: Telegram,
        data_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        with front(data_dir, telegram) as bot:
            wait_until(bot.receiver.is_up.is_set, 20, "it is up")
            alpha = telegram.person("Alpha")
            with monkeypatch.context() as patch:
                patch.setattr(bot.house.intake, "accept", lambda *_, **__: 1 / 0)
                alpha.sends_voice(OGG)
                telegram.waits_for(lambda: alpha.chat.texts, "an answer")
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(1)
            assert "Something went wrong inside Pisar" in alpha.chat.texts[0]
        told = [item for item in caplog.records if item.getMessage() == "an update is given up"]
        assert len(told) == 1

    def test_after_a_week_of_silence_new_numbers_are_read(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        moment = [utcnow()]
        with front(data_dir, telegram, clock=lambda: moment[0]) as bot:
            alpha = telegram.person("Alpha")
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(1)
            bot.waits_until_idle()
            moment[0] += timedelta(days=7)
            known = bot.bots.newest()
            assert known
            asked = len(telegram.journal.calls("getUpdates"))
            # The question that was asked before that week must be over.
            telegram.waits_for(
                lambda: len(telegram.journal.calls("getUpdates")) > asked + 1, "a later question"
            )
            telegram.network.updates.renumber(known.read_up_to - 5)
            alpha.sends_voice(OGG)
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(3)
            bot.waits_until_idle()


MALFORMED: list[dict[str, Any]] = [
    {"message": None},
    {"message": "canary"},
    {"message": {"message_id": 1}},
    {"message": {"message_id": "canary", "chat": {"id": 5, "type": "private"}, "voice": {}}},
    {"message": {"message_id": 2**70, "chat": {"id": 5, "type": "private"}, "text": "canary"}},
    {"message": {"message_id": 1, "chat": {"id": 2**63, "type": "private"}, "text": "canary"}},
    {"message": {"message_id": 1, "chat": {"id": 5, "type": "canary"}, "text": "x"}},
    {"message": {"message_id": 1, "chat": {"id": 5, "type": "private"}, "voice": "canary"}},
    {"message": {"message_id": 1, "chat": {"id": 5, "type": "private"}, "voice": {"file_id": 1}}},
    {"message": {"message_id": 1, "chat": {"id": 5, "type": "private"}, "from": "canary"}},
    {"message": {"message_id": 1, "chat": [], "text": "canary"}},
    {"message": {"message_id": True, "chat": {"id": 5, "type": "private"}, "text": "x"}},
    {"callback_query": {}},
    {"callback_query": {"id": 7, "data": "canary"}},
    {"callback_query": {"id": "7", "data": "canary", "message": {"chat": 5}}},
    {"my_chat_member": {"chat": {"id": 5, "type": "group"}}},
    {"my_chat_member": "canary"},
    {"channel_post": []},
    {"something_new": {"canary": 1}},
    {},
]


class TestKills:
    def test_ct10_p46_killed_between_receipt_and_commit_the_same_voice_is_one_job(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        gate = telegram.faults.hold("file")
        alpha = telegram.person("Alpha")
        sent = alpha.sends_voice(OGG)
        with bot_process(data_dir, telegram) as bot:
            gate.wait_reached(60)
            bot.kill()
        gate.let_go()
        self._comes_once(telegram, data_dir, {sent.id})

    def test_ct10_p46_killed_between_commit_and_confirmation_it_is_one_job_too(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        alpha = telegram.person("Alpha")
        sent = [alpha.sends_voice(OGG + bytes([number])) for number in range(3)]
        gate = telegram.faults.hold("file", arguments={})
        with bot_process(data_dir, telegram) as bot:
            gate.wait_reached(60)
            gate.let_go()
            # Now they are being taken, one commit after another.
            self._kill_once_taken(bot, data_dir)
        self._comes_once(telegram, data_dir, {message.id for message in sent})

    def test_p46_a_fault_between_the_job_and_its_message_is_made_good(
        self, telegram: Telegram, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        add, faults = JobMessages.add, [AppError("store_busy")]

        def add_later(self: JobMessages, *given: Any) -> None:
            if faults:
                raise faults.pop()
            add(self, *given)

        monkeypatch.setattr(JobMessages, "add", add_later)
        telegram.person("Alpha").sends_voice(OGG)
        with front(data_dir, telegram) as bot:
            bot.waits_until_idle()
            (job,) = bot.jobs()
            assert bot.messages.of_job(job.id)
            assert not faults

    def test_what_was_sent_while_the_bot_was_down_is_taken(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        alpha = telegram.person("Alpha")
        with front(data_dir, telegram) as bot:
            alpha.sends_voice(OGG)
            bot.waits_for_jobs(1)
        alpha.sends_voice(OGG)
        alpha.sends_voice(OGG)
        with front(data_dir, telegram) as bot:
            bot.waits_for_jobs(3)

    def test_p45_an_update_is_confirmed_only_when_its_job_is_committed(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        gate = telegram.faults.hold("file")
        telegram.person("Alpha").sends_voice(OGG)
        with front(data_dir, telegram) as bot:
            gate.wait_reached()
            assert not bot.is_idle()
            assert bot.jobs() == []
            gate.let_go()
            bot.waits_until_idle()
            assert len(bot.jobs()) == 1

    def test_p44_a_stop_while_a_file_comes_is_soon_and_leaves_it_to_the_next(
        self, telegram: Telegram, data_dir: Path
    ) -> None:
        gate = telegram.faults.hold("file")
        telegram.person("Alpha").sends_voice(OGG)
        with bot_process(data_dir, telegram, TELEGRAM__REQUEST_TIMEOUT="30") as bot:
            gate.wait_reached(60)
            assert bot.stop() == 0, bot.log
        gate.let_go()
        with front(data_dir, telegram) as again:
            again.waits_for_jobs(1)

    @staticmethod
    def _kill_once_taken(bot: BotProcess, data_dir: Path) -> None:
        wait_until(lambda: "handed in" in bot.log, 60, "a job is committed")
        bot.kill()

    @staticmethod
    def _comes_once(telegram: Telegram, data_dir: Path, wanted: set[int]) -> None:
        with front(data_dir, telegram) as bot:
            jobs = bot.waits_for_jobs(len(wanted))
            bot.waits_until_idle()
            assert {job.tg_reply_message_id for job in bot.jobs()} == wanted
            assert len(bot.jobs()) == len(wanted)
            assert all(bot.messages.of_job(job.id) for job in jobs)
