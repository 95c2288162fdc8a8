"""The double itself: its world, and what it answers to a request."""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.telegram.double.chats import Chat
from tests.telegram.double.clock import Clock
from tests.telegram.double.errors import ApiError, bad_request
from tests.telegram.double.faults import Faults
from tests.telegram.double.files import Files
from tests.telegram.double.journal import Journal
from tests.telegram.double.limits import Limits
from tests.telegram.double.messages import Message, User
from tests.telegram.double.methods import METHODS, Said
from tests.telegram.double.network import Network
from tests.telegram.double.people import PeopleChannel, PeopleGroup, Person
from tests.telegram.double.query import Query, read
from tests.telegram.double.server import Server
from tests.telegram.double.updates import Update, Updates
from tests.telegram.double.webhook import Webhook

TOKEN = "7100000001:AAEdoubleDoubleDoubleDoubleDouble01"
_SUPERGROUP = -1_000_000_000_000


class Telegram:
    """A Bot API server on loopback with one bot and as many people as a test wants.

    is_local: as a server of one's own started with --local. It gives absolute paths, has no limit
    of 20 MB, takes webhooks without TLS, and serves no file over HTTP unless serves_files, as
    behind a proxy that does. slows_hasty: wait where the original makes hasty clients wait; tests
    that count seconds turn it off.
    """

    def __init__(
        self,
        token: str = TOKEN,
        *,
        username: str = "scribe_bot",
        is_local: bool = False,
        serves_files: bool | None = None,
        slows_hasty: bool = True,
        takes_plain_webhooks: bool = False,
        webhook_pause_seconds: float = 1.0,
        port: int = 0,
    ) -> None:
        self.token = token
        self.is_local = is_local
        self.serves_files = not is_local if serves_files is None else serves_files
        self.slows_hasty = slows_hasty
        self.takes_plain_webhooks = takes_plain_webhooks
        self.webhook_pause_seconds = webhook_pause_seconds
        self.clock = Clock()
        self.journal = Journal()
        self.faults = Faults()
        self.limits = Limits(self.clock)
        self._folder = tempfile.TemporaryDirectory(prefix="bot-api-")
        lock = threading.RLock()
        bot = User(int(token.partition(":")[0]), "Scribe", username=username, is_bot=True)
        files = Files(self.clock, token, Path(self._folder.name), is_local)
        self.network = Network(self.clock, lock, files, Updates(self.clock, lock, slows_hasty), bot)
        self.network.updates.on_push = self._wake_webhook
        self.commands: dict[tuple[str, str], list[dict[str, str]]] = {}
        self.webhook: Webhook | None = None
        self.next_webhook_at = 0.0
        self.first_asked_at = 0.0
        self.logged_out_until = 0.0
        self.is_bot_closed = False
        self.is_revoked = False
        self._old_webhooks: list[Webhook] = []
        self._server = Server(self, port)

    @property
    def api_url(self) -> str:
        """Where it listens, as telegram.api_url wants it."""
        return f"http://127.0.0.1:{self._server.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it; raises what went wrong within the double itself, if anything did."""
        self.faults.release()
        with self.network.lock:
            self.take_webhook(None)
            self.network.updates.close()
        for webhook in self._old_webhooks:
            webhook.join()
        self._server.stop()
        self._folder.cleanup()
        if self._server.failures:
            raise self._server.failures[0]

    def goes_down(self) -> None:
        """Refuse connections, and cut those there are; what it knows stays."""
        with self.network.lock:
            self.network.updates.close()
        self._server.stop()

    def comes_up(self) -> None:
        """Listen again, at the same address."""
        self.network.updates.is_closed = False
        self._server = Server(self, self._server.port)

    def person(self, name: str = "Alpha", language: str = "en", username: str = "") -> Person:
        """Somebody who does not know the bot yet."""
        with self.network.lock:
            return Person(self.network, name, language, username)

    def group(
        self,
        title: str = "Office",
        *people: Person,
        is_super: bool = True,
        is_forum: bool = False,
        username: str = "",
    ) -> PeopleGroup:
        """A group of these people, the first of them its creator; the bot is not in it."""
        with self.network.lock:
            number = next(self.network.ids)
            number = _SUPERGROUP - number if is_super or is_forum else -number
            group = PeopleGroup(
                self.network, number, title, username, is_super=is_super, is_forum=is_forum
            )
        group.joins(*people[:1], status="creator")
        group.joins(*people[1:])
        return group

    def channel(self, title: str = "News", username: str = "") -> PeopleChannel:
        """A channel; the bot is not in it."""
        with self.network.lock:
            number = _SUPERGROUP - next(self.network.ids)
            return PeopleChannel(self.network, number, title, username)

    def tells(self, body: Mapping[str, Any], chat: Chat | None = None) -> Update | None:
        """An update of any shape, as {"message": …}: what no app of Telegram's would send."""
        with self.network.lock:
            return self.network.updates.push("", body, chat.id if chat else 0)

    def tells_again(self, message: Message) -> None:
        """The same message in a new update, as Telegram does after trouble of its own."""
        with self.network.lock:
            message.chat.tell(message)

    def waits_for(
        self, condition: Callable[[], object], what: str = "", seconds: float = 20
    ) -> None:
        """Until a condition holds; AssertionError with what was asked last when it never does."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                seen = [f"{call.method} {call.refusal}" for call in self.journal.calls()[-20:]]
                raise AssertionError(f"not within {seconds} s: {what or condition}; asked: {seen}")
            time.sleep(0.01)

    def answer(self, token: str, query: Query) -> Mapping[str, Any]:
        """The JSON that answers a request; the caller holds the lock."""
        try:
            self.check_token(token)
            self._check_session(query.method)
            method = METHODS.get(query.method)
            if method is None:
                raise ApiError(404, "Not Found: method not found")
            said = method(self, query)
        except ApiError as error:
            return error.body()
        if isinstance(said, Said):
            return {"ok": True, "result": said.result, "description": said.description}
        return {"ok": True, "result": said}

    def check_token(self, token: str) -> None:
        """ApiError for a token that is none, or not the bot's."""
        number, colon, _ = token.partition(":")
        if not colon or not number.isdigit() or number.startswith("0"):
            if self.is_local:
                raise ApiError(401, "Unauthorized: invalid token specified")
            raise ApiError(404, "Not Found")
        if token != self.token or self.is_revoked:
            raise ApiError(401, "Unauthorized")

    def carry_out(self, asked: Mapping[str, Any]) -> None:
        """A request in a webhook's answer."""
        body = {key: value for key, value in asked.items() if key != "method"}
        query = read(str(asked["method"]), "", "application/json", json.dumps(body).encode())
        with self.network.lock:
            answer = self.answer(self.token, query)
            self.journal.add(
                self.clock.now(),
                str(asked["method"]),
                arguments=query.arguments,
                attachments={},
                answer=answer,
            )

    def take_webhook(self, webhook: Webhook | None) -> None:
        """Put a webhook in the place of the one that was; the caller holds the lock."""
        if self.webhook:
            self.webhook.close()
            self._old_webhooks.append(self.webhook)
        self.webhook = webhook
        self.network.updates.has_webhook = webhook is not None
        if webhook:
            webhook.start()

    def _wake_webhook(self) -> None:
        if self.webhook:
            self.webhook.wake()

    def _check_session(self, method: str) -> None:
        now = self.clock.now()
        self.first_asked_at = self.first_asked_at or now
        if now < self.logged_out_until:
            raise ApiError(400, "Logged out")
        if self.is_bot_closed:
            if method == "close":
                raise bad_request("the bot has already been closed")
            self.is_bot_closed, self.first_asked_at = False, now
