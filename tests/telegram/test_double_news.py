"""The Bot API server of the tests: what people do becomes updates, kept until confirmed."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.telegram.asking import Ask, asking, refusal
from tests.telegram.double import Telegram
from tests.telegram.double.people import Person

DAY = 24 * 3600
MEGABYTES = 1024**2


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
    return telegram.person("Alpha", language="ru")


def news(ask: Ask, **arguments: Any) -> Sequence[dict[str, Any]]:
    found = ask("getUpdates", **arguments)["result"]
    assert isinstance(found, list)
    return found


def messages(ask: Ask) -> Sequence[dict[str, Any]]:
    """The bodies of the updates that wait, whatever their kind."""
    return [next(v for k, v in update.items() if k != "update_id") for update in news(ask)]


def test_updates_come_again_until_an_offset_confirms_them(ask: Ask, alpha: Person) -> None:
    for text in ("one", "two", "three"):
        alpha.says(text)
    first, second, third = news(ask)
    assert third["update_id"] == first["update_id"] + 2
    assert news(ask) == [first, second, third]
    assert news(ask, limit=2) == [first, second]
    assert news(ask, offset=second["update_id"]) == [second, third]
    assert news(ask) == [second, third]
    assert news(ask, offset=-1) == [third]
    assert news(ask, offset=third["update_id"] + 1) == []
    assert news(ask) == []


def test_an_offset_of_another_numbering_confirms_nothing(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    alpha.says("one")
    [update] = news(ask)
    assert news(ask, offset=update["update_id"] + 1000) == [update]
    news(ask, offset=update["update_id"] + 1)
    telegram.network.updates.renumber(5)
    alpha.says("two")
    assert [found["update_id"] for found in news(ask, offset=update["update_id"] + 1)] == [5]


def test_an_update_is_kept_for_a_day_and_a_pressed_button_for_minutes(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    alpha.says("one")
    button = {"text": "srt", "callback_data": "srt"}
    ask("sendMessage", chat_id=alpha.id, text="x", reply_markup={"inline_keyboard": [[button]]})
    alpha.presses(alpha.chat.from_bot[0], "srt")
    telegram.clock.passes(seconds=DAY - 60)
    assert [found["text"] for found in messages(ask)] == ["one"]
    telegram.clock.passes(seconds=61)
    assert messages(ask) == []


def test_a_poll_waits_for_what_comes(telegram: Telegram, ask: Ask, alpha: Person) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(news, ask, timeout=20)
        alpha.says("one")
        assert [update["message"]["text"] for update in waiting.result(10)] == ["one"]
    [update] = news(ask)
    assert news(ask, offset=update["update_id"] + 1, timeout=1) == []


def test_a_second_poller_ends_the_first_one_with_a_conflict(telegram: Telegram) -> None:
    url = f"{telegram.api_url}/bot{telegram.token}/getUpdates?timeout=20"
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(requests.get, url, timeout=30) for _ in range(2)]
        telegram.waits_for(lambda: telegram.journal.calls(), "one of them ended")
        telegram.tells({"poll": {}})
        said = [answer.result(10).json() for answer in answers]
    lost, won = sorted(said, key=lambda answer: bool(answer["ok"]))
    assert refusal(lost) == (
        "409 Conflict: terminated by other getUpdates request;"
        " make sure that only one bot instance is running"
    )
    assert [list(update) for update in won["result"]] == [["update_id", "poll"]]


def test_only_what_was_asked_for_is_told(ask: Ask, alpha: Person) -> None:
    news(ask, allowed_updates=["channel_post"])
    alpha.says("one")
    assert news(ask, allowed_updates=[]) == []
    alpha.says("two")
    assert [message["text"] for message in messages(ask)] == ["two"]


def test_each_kind_of_recording_is_told_as_telegram_tells_it(ask: Ask, alpha: Person) -> None:
    alpha.sends_voice(b"OggS", seconds=7, caption="note")
    alpha.sends_audio(b"ID3", "song.mp3", size=123)
    alpha.sends_video(b"ftyp", "film.mp4")
    alpha.sends_video_note(b"ftyp")
    alpha.sends_document(b"RIFF", "", media_type="")
    alpha.sends_photo()
    voice, audio, video, note, document, photo = messages(ask)
    assert voice["from"]["language_code"] == "ru"
    assert (voice["voice"]["duration"], voice["caption"]) == (7, "note")
    assert (audio["audio"]["file_name"], audio["audio"]["file_size"]) == ("song.mp3", 123)
    assert video["video"]["mime_type"] == "video/mp4"
    assert not {"file_name", "mime_type"} & note["video_note"].keys()
    assert set(document["document"]) == {"file_id", "file_unique_id", "file_size"}
    assert photo["photo"][0]["file_id"]


def test_an_album_is_messages_of_one_group(ask: Ask, alpha: Person) -> None:
    alpha.sends_album([b"ID3a", b"ID3b", b"ID3c"], captions=["all of them"])
    found = messages(ask)
    assert len({message["media_group_id"] for message in found}) == 1
    assert [message.get("caption") for message in found] == ["all of them", None, None]


def test_a_forward_tells_whose_it_was(telegram: Telegram, ask: Ask, alpha: Person) -> None:
    beta = telegram.person("Beta")
    for source in (beta, telegram.channel("News"), "Nobody"):
        alpha.sends_voice(b"OggS", forwarded_from=source)
    kinds = [message["forward_origin"]["type"] for message in messages(ask)]
    assert kinds == ["user", "channel", "hidden_user"]


def test_a_caption_that_is_edited_comes_as_an_edit(ask: Ask, alpha: Person) -> None:
    sent = alpha.sends_voice(b"OggS", caption="a")
    alpha.edits(sent, "b")
    first, second = news(ask)
    assert first["message"]["caption"] == "a"
    assert second["edited_message"]["caption"] == "b"
    assert second["edited_message"]["voice"] == first["message"]["voice"]


def test_a_group_shows_a_bot_in_privacy_mode_what_is_meant_for_it(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    group = telegram.group("Office", alpha)
    alpha.says("before", to=group)
    group.adds_bot(alpha)
    assert [list(update)[1] for update in news(ask)] == ["my_chat_member", "message"]
    telegram.network.updates.clear()
    sent = alpha.sends_voice(b"OggS", to=group)
    alpha.says("/text@other_bot", to=group, replying=sent)
    assert messages(ask) == []
    alpha.says("/text", to=group, replying=sent)
    alpha.says("hey @scribe_bot", to=group)
    answer = ask("sendMessage", chat_id=group.id, text="yes?")["result"]
    alpha.says("never mind", to=group, replying=group.messages[answer["message_id"]])
    command, mention, reply = messages(ask)
    assert command["reply_to_message"]["voice"]
    # Without topics the answers to a message make a thread, and that is no topic.
    assert (command["message_thread_id"], "is_topic_message" in command) == (sent.id, False)
    assert (mention["text"], reply["text"]) == ("hey @scribe_bot", "never mind")
    group.promotes_bot(alpha)
    group.sends_voice(b"OggS")
    anonymous = messages(ask)[-1]
    assert anonymous["sender_chat"]["id"] == group.id
    assert anonymous["from"]["username"] == "GroupAnonymousBot"


def test_a_channel_tells_its_posts_to_an_administrator(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    channel = telegram.channel("News")
    channel.sends_voice(b"OggS")
    assert messages(ask) == []
    channel.adds_bot(alpha, is_admin=True)
    post = channel.sends_voice(b"OggS")
    told = news(ask)[-1]["channel_post"]
    assert told["sender_chat"]["id"] == channel.id
    assert "from" not in told
    ask("sendMessage", chat_id=channel.id, text="x", reply_parameters={"message_id": post.id})
    assert [message.text for message in channel.answers_to(post)] == ["x"]


def test_a_file_is_fetched_by_a_link_that_ends(
    telegram: Telegram, ask: Ask, alpha: Person, tmp_path: Path
) -> None:
    recording = tmp_path / "speech.ogg"
    recording.write_bytes(b"OggS" * 1000)
    alpha.sends_voice(recording)
    file = messages(ask)[0]["voice"]
    assert refusal(ask("getFile", file_id="x")) == "400 Bad Request: invalid file_id"
    assert refusal(ask("getFile")) == "400 Bad Request: file_id not specified"
    path = ask("getFile", file_id=file["file_id"])["result"]["file_path"]
    url = f"{telegram.api_url}/file/bot{telegram.token}/{path}"
    assert requests.get(url, timeout=20).content == recording.read_bytes()
    telegram.clock.passes(seconds=3601)
    assert requests.get(url, timeout=20).json()["error_code"] == 404
    ask("getFile", file_id=file["file_id"])
    assert requests.get(url, timeout=20).ok


def test_ct01_a_large_file_is_given_by_a_server_of_ones_own_alone(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    for size in (20 * MEGABYTES, 20 * MEGABYTES + 1):
        alpha.sends_document(b"RIFF", size=size)
    small, large = (message["document"]["file_id"] for message in messages(ask))
    assert ask("getFile", file_id=small)["ok"]
    assert refusal(ask("getFile", file_id=large)) == "400 Bad Request: file is too big"
    for serves_files in (False, True):
        with (
            Telegram(is_local=True, serves_files=serves_files, slows_hasty=False) as own,
            asking(own) as ask_own,
        ):
            own.person().sends_document(b"RIFF", "call.wav", size=25 * MEGABYTES)
            number = messages(ask_own)[0]["document"]["file_id"]
            path = Path(ask_own("getFile", file_id=number)["result"]["file_path"])
            assert path.is_absolute()
            assert path.read_bytes() == b"RIFF"
            # The original keeps a bot's files in a folder that is named by its token.
            assert own.token in path.parts
            answer = requests.get(f"{own.api_url}/file/bot{own.token}/{path}", timeout=20)
            assert answer.ok is serves_files


def test_a_document_of_the_bots_keeps_its_name_and_bytes(
    telegram: Telegram, ask: Ask, alpha: Person
) -> None:
    alpha.starts()
    url = f"{telegram.api_url}/bot{telegram.token}/sendDocument"

    def send(files: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        data = {"chat_id": alpha.id} | arguments
        said: dict[str, Any] = requests.post(url, data=data, files=files, timeout=20).json()
        return said

    sent = send({"document": ("Речь.txt", "текст".encode())}, caption="all")
    assert sent["result"]["document"]["file_name"] == "Речь.txt"
    assert send({"f": ("a.txt", b"x")}, document="attach://f")["ok"]
    file_id = sent["result"]["document"]["file_id"]
    assert ask("sendDocument", chat_id=alpha.id, document=file_id)["ok"]
    shown = alpha.chat.from_bot
    assert [message.file_name for message in shown] == ["Речь.txt", "a.txt", ""]
    assert (shown[0].text, shown[0].data) == ("all", "текст".encode())
    none = refusal(send({}))
    assert none == "400 Bad Request: there is no document in the request"
    empty = refusal(send({"document": ("a.txt", b"")}))
    assert empty == "400 Bad Request: file must be non-empty"
    long = refusal(send({"document": ("a.txt", b"x")}, caption="x" * 1025))
    assert long == "400 Bad Request: message caption is too long"
    unknown = refusal(ask("sendDocument", chat_id=alpha.id, document="BQAC"))
    assert unknown == "400 Bad Request: wrong file identifier/HTTP URL specified"


@contextmanager
def listening(answer: Callable[[dict[str, Any], str], tuple[int, bytes]]) -> Iterator[str]:
    """An address to which updates are brought; answer is given the update and the secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            update = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            secret = self.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
            status, body = answer(update, secret)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hook"
        finally:
            server.shutdown()
            thread.join()


def test_a_webhook_is_brought_each_update_in_order_until_it_takes_it() -> None:
    seen: list[tuple[str, str]] = []

    def answer(update: dict[str, Any], secret: str) -> tuple[int, bytes]:
        text = update["message"]["text"]
        seen.append((text, secret))
        if text == "one" and len(seen) < 4:
            return 500, b""
        reply = {"method": "sendMessage", "chat_id": update["message"]["chat"]["id"], "text": text}
        return 200, json.dumps(reply).encode()

    with (
        Telegram(
            takes_plain_webhooks=True, webhook_pause_seconds=0.01, slows_hasty=False
        ) as telegram,
        asking(telegram) as ask,
        listening(answer) as url,
    ):
        alpha = telegram.person()
        alpha.says("one")
        set_to = {"url": url, "secret_token": "s3cret_", "allowed_updates": ["message"]}
        assert ask("setWebhook", **set_to)["description"] == "Webhook was set"
        alpha.says("two")
        telegram.waits_for(lambda: alpha.chat.texts == ["one", "two"], "both were answered")
        assert seen == [("one", "s3cret_")] * 4 + [("two", "s3cret_")]
        assert refusal(ask("getUpdates")).startswith(
            "409 Conflict: can't use getUpdates method while webhook is active"
        )
        told = ask("getWebhookInfo")["result"]
        assert (told["url"], told["pending_update_count"]) == (url, 0)
        assert told["last_error_message"].startswith("Wrong response from the webhook: 500")
        assert ask("deleteWebhook")["description"] == "Webhook was deleted"
        alpha.says("three")
        assert [update["message"]["text"] for update in news(ask)] == ["three"]
        assert ask("deleteWebhook", drop_pending_updates=True)["ok"]
        assert news(ask) == []


@pytest.mark.parametrize(
    ("arguments", "description"),
    [
        ({"url": "http://127.0.0.1:80"}, "bad webhook: An HTTPS URL must be provided for webhook"),
        (
            {"url": "https://127.0.0.1:9000"},
            "bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443",
        ),
        ({"url": "https://"}, "invalid webhook URL specified"),
        (
            {"url": "https://a.test", "secret_token": "ы"},
            "secret token contains unallowed characters",
        ),
        ({"url": "https://a.test", "secret_token": "x" * 257}, "secret token is too long"),
    ],
)
def test_a_webhook_that_the_original_would_not_take_is_refused(
    ask: Ask, arguments: dict[str, Any], description: str
) -> None:
    assert refusal(ask("setWebhook", **arguments)) == f"400 Bad Request: {description}"
