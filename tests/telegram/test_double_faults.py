"""The Bot API server of the tests fails as networks do, and serves the bot's own library."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import telebot
from telebot import apihelper, types

from tests.telegram.asking import Ask, asking
from tests.telegram.double import Telegram
from tests.telegram.double.people import Person

SPEECH = Path(__file__).parents[1] / "data" / "russian.ogg"


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with Telegram(slows_hasty=False) as double:
        yield double


@pytest.fixture
def ask(telegram: Telegram) -> Iterator[Ask]:
    with asking(telegram) as client:
        yield client


@pytest.fixture
def alpha(telegram: Telegram) -> Person:
    alpha = telegram.person("Alpha")
    alpha.starts()
    return alpha


def send(telegram: Telegram, alpha: Person, seconds: float = 20) -> requests.Response:
    url = f"{telegram.api_url}/bot{telegram.token}/sendMessage"
    return requests.post(url, data={"chat_id": alpha.id, "text": "x"}, timeout=seconds)


def test_q25_each_fault_comes_as_often_as_it_was_ordered(telegram: Telegram, alpha: Person) -> None:
    faults = telegram.faults
    faults.silence("sendMessage")
    with pytest.raises(requests.ReadTimeout):
        send(telegram, alpha, 0.2)
    faults.reset("sendMessage")
    with pytest.raises(requests.ConnectionError):
        send(telegram, alpha)
    faults.page("sendMessage", times=2, status=503)
    for _ in range(2):
        answer = send(telegram, alpha)
        assert answer.status_code == 503
        assert answer.text.startswith("<html>")
    faults.garbage("sendMessage")
    with pytest.raises(requests.JSONDecodeError):
        send(telegram, alpha).json()
    faults.flood("*", retry_after=7)
    answer = send(telegram, alpha)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert answer.json()["parameters"] == {"retry_after": 7}
    faults.refuse(403, "Forbidden: bot was blocked by the user", "sendMessage")
    assert send(telegram, alpha).json()["error_code"] == 403
    assert not alpha.chat.from_bot
    assert send(telegram, alpha).ok
    names = [call.fault for call in telegram.journal.calls("sendMessage")]
    assert names == ["silence", "reset", "page", "page", "garbage", "flood", "refuse", None]


def test_q25_an_answer_that_gets_lost_leaves_what_was_done(
    telegram: Telegram, alpha: Person
) -> None:
    faults = telegram.faults
    faults.reset("sendMessage", after=True)
    with pytest.raises(requests.ConnectionError):
        send(telegram, alpha)
    faults.cut_off("sendMessage", at=20)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        send(telegram, alpha)
    faults.silence("sendMessage", after=True)
    with pytest.raises(requests.ReadTimeout):
        send(telegram, alpha, 0.2)
    faults.page("sendMessage", after=True)
    assert send(telegram, alpha).status_code == 502
    assert len(alpha.chat.from_bot) == 4


def test_q25_a_dripping_answer_outlasts_the_patience_between_two_bytes(
    telegram: Telegram, alpha: Person
) -> None:
    telegram.faults.drip("sendMessage", seconds_a_byte=0.02)
    began = time.monotonic()
    assert send(telegram, alpha, 1).json()["ok"]
    assert time.monotonic() - began > 1


def test_a_fault_may_be_meant_for_one_chat_and_called_off(
    telegram: Telegram, alpha: Person
) -> None:
    beta = telegram.person("Beta")
    beta.starts()
    fault = telegram.faults.page("sendMessage", times=None, arguments={"chat_id": str(beta.id)})
    assert send(telegram, alpha).ok
    assert [send(telegram, beta).status_code for _ in range(3)] == [502] * 3
    telegram.faults.call_off(fault)
    assert send(telegram, beta).ok


def test_updates_whose_answer_was_lost_come_again(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    telegram.faults.reset("getUpdates", after=True)
    with pytest.raises(requests.ConnectionError):
        ask("getUpdates")
    [update] = ask("getUpdates")["result"]
    assert update["message"]["text"] == "/start"


def test_a_client_that_is_killed_at_the_gate_has_sent_or_not_as_one_wants(
    telegram: Telegram, alpha: Person
) -> None:
    script = "import sys, requests; requests.post(sys.argv[1], data={'text': 'x'})"
    url = f"{telegram.api_url}/bot{telegram.token}/sendMessage?chat_id={alpha.id}"
    for after in (False, True):
        gate = telegram.faults.hold("sendMessage", after=after)
        with subprocess.Popen([sys.executable, "-c", script, url]) as client:
            gate.wait_reached()
            assert len(alpha.chat.from_bot) == after
            client.kill()
        if after:
            gate.let_go()


def test_a_server_that_goes_down_refuses_and_remembers(telegram: Telegram, alpha: Person) -> None:
    assert send(telegram, alpha).ok
    telegram.goes_down()
    with pytest.raises(requests.ConnectionError):
        send(telegram, alpha)
    alpha.says("are you there?")
    telegram.comes_up()
    with asking(telegram) as ask:
        assert len(ask("getUpdates")["result"]) == 2
    assert alpha.chat.texts == ["x"]


def test_hasty_clients_are_made_to_wait_as_the_original_does() -> None:
    with Telegram() as telegram, asking(telegram) as ask:
        alpha = telegram.person()
        alpha.says("one")
        alpha.says("two")
        assert len(ask("getUpdates", limit=10)["result"]) == 2
        # The same offset again at once: one at a time.
        assert len(ask("getUpdates", limit=10)["result"]) == 1
        last = telegram.network.updates.pending()[-1].id
        ask("getUpdates", offset=last + 1)
        began = time.monotonic()
        assert ask("getUpdates", offset=last + 1)["result"] == []
        assert time.monotonic() - began > 2.5


@pytest.fixture
def bot(telegram: Telegram, monkeypatch: pytest.MonkeyPatch) -> Iterator[telebot.TeleBot]:
    monkeypatch.setattr(apihelper, "API_URL", telegram.api_url + "/bot{0}/{1}")
    monkeypatch.setattr(apihelper, "FILE_URL", telegram.api_url + "/file/bot{0}/{1}")
    monkeypatch.setattr(apihelper, "CUSTOM_REQUEST_SENDER", None)
    monkeypatch.setattr(apihelper, "READ_TIMEOUT", 20)
    yield telebot.TeleBot(telegram.token, threaded=False)
    apihelper._get_req_session().close()
    apihelper._get_req_session(reset=True).close()


def test_the_library_polls_fetches_answers_and_edits(
    telegram: Telegram, bot: telebot.TeleBot, alpha: Person
) -> None:
    assert bot.get_me().username == "scribe_bot"
    sent = alpha.sends_voice(SPEECH, caption="to the point")
    start, told = (update.message for update in bot.get_updates())
    assert start.text == "/start"
    assert told.voice.file_size == SPEECH.stat().st_size
    path = bot.get_file(told.voice.file_id).file_path
    assert bot.download_file(path) == SPEECH.read_bytes()
    reply = types.ReplyParameters(sent.id, allow_sending_without_reply=True)
    answer = bot.send_message(alpha.id, "taken", reply_parameters=reply)
    buttons = types.InlineKeyboardMarkup([[types.InlineKeyboardButton("srt", callback_data="srt")]])
    bot.edit_message_text("the text", alpha.id, answer.message_id, reply_markup=buttons)
    [shown] = alpha.chat.answers_to(sent)
    assert (shown.text, shown.buttons, shown.was) == ("the text", ["srt"], ["taken"])
    pressed = alpha.presses(shown, "srt")
    [update] = bot.get_updates(offset=telegram.network.updates.pending()[-1].id)
    bot.answer_callback_query(update.callback_query.id, "here it is")
    assert pressed.answer == "here it is"
    bot.send_chat_action(alpha.id, "upload_document")
    with SPEECH.open("rb") as document:
        bot.send_document(alpha.id, document, visible_file_name="speech.srt", caption="srt")
    assert alpha.chat.from_bot[-1].data == SPEECH.read_bytes()
    assert alpha.chat.actions == ["upload_document"]
    bot.delete_message(alpha.id, answer.message_id)
    assert [message.media for message in alpha.chat.from_bot] == ["document"]
    bot.set_my_commands([types.BotCommand("help", "How")], language_code="ru")
    assert [command.command for command in bot.get_my_commands(language_code="ru")] == ["help"]
    assert telegram.journal.refusals() == []


def test_the_library_understands_the_refusals(
    telegram: Telegram, bot: telebot.TeleBot, alpha: Person
) -> None:
    with pytest.raises(apihelper.ApiTelegramException) as refused:
        bot.send_message(alpha.id, "x" * 4097)
    assert refused.value.description == "Bad Request: message is too long"
    telegram.faults.flood("sendMessage", retry_after=5)
    with pytest.raises(apihelper.ApiTelegramException) as busy:
        bot.send_message(alpha.id, "x")
    assert busy.value.result_json["parameters"] == {"retry_after": 5}
    telegram.faults.page("getMe")
    with pytest.raises(apihelper.ApiHTTPException):
        bot.get_me()
    telegram.is_revoked = True
    with pytest.raises(apihelper.ApiTelegramException, match="Unauthorized"):
        bot.get_me()


def test_the_librarys_own_loop_sees_every_message_once(
    telegram: Telegram, bot: telebot.TeleBot, alpha: Person
) -> None:
    seen: list[str] = []

    @bot.message_handler(content_types=["text", "voice", "video_note"])  # type: ignore[untyped-decorator]
    def take(message: types.Message) -> None:
        seen.append(message.content_type)
        bot.reply_to(message, message.content_type)
        if len(seen) == 3:
            bot.stop_polling()

    alpha.sends_voice(b"OggS")
    alpha.sends_video_note(b"ftyp")
    bot.polling(non_stop=False, interval=0, timeout=5, long_polling_timeout=2)
    assert seen == alpha.chat.texts == ["text", "voice", "video_note"]


def test_the_double_runs_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.telegram.double", "--name", "Alpha"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=SPEECH.parents[2]
    ) as double:
        assert double.stdin
        assert double.stdout
        address = double.stdout.readline().strip().partition("=")[2]
        token = double.stdout.readline().strip().partition("=")[2]
        url = f"{address}/bot{token}"
        double.stdin.write(f"voice {SPEECH} 'by hand'\n")
        double.stdin.flush()
        told = requests.get(f"{url}/getUpdates", params={"timeout": 20}, timeout=30).json()
        message = told["result"][0]["message"]
        reply = {"chat_id": message["chat"]["id"], "text": "heard"}
        assert requests.post(f"{url}/sendMessage", json=reply, timeout=20).ok
        said, _ = double.communicate("show\nquit\n", timeout=20)
    assert "Alpha: voice by hand" in said
    assert "bot:  heard" in said
    assert double.returncode == 0
