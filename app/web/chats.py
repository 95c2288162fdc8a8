"""The page Telegram: how the bot fares, which chats it has seen, and who of them may use it."""

from dataclasses import dataclass
from typing import TypeVar

from flask import Blueprint, redirect, render_template, request, url_for
from flask_babel import gettext
from werkzeug.wrappers import Response as BaseResponse

from app import liveness
from app.chats import Access, Bot, Bots, Chat, ChatKind, Chats, Mode, Trouble
from app.errors import N_, AppError
from app.settings import EVERYBODY
from app.web.services import services

_SHOWN = 200
_KINDS = {
    ChatKind.PRIVATE: N_("person"),
    ChatKind.GROUP: N_("group"),
    ChatKind.SUPERGROUP: N_("group"),
    ChatKind.CHANNEL: N_("channel"),
}
_MODES = {
    Mode.ALL: N_("all recordings"),
    Mode.ON_REQUEST: N_("only on /text"),
    Mode.OFF: N_("none"),
}
_TROUBLES = {
    Trouble.UNREACHABLE: N_("Telegram cannot be reached. The bot goes on trying by itself."),
    Trouble.CONFLICT: N_("Another program reads this bot's messages. End it, or use another bot."),
    Trouble.REFUSED: N_("Telegram refuses the bot: its token may have been revoked."),
    Trouble.STUCK: N_("What is sent cannot be taken at the moment. The log says why."),
}

_Choice = TypeVar("_Choice", Access, Mode)

blueprint = Blueprint("chats", __name__, url_prefix="/telegram")


@dataclass(frozen=True)
class State:
    """How the bot fares: a sentence, and whether it is well ("working") or not ("stuck")."""

    tone: str
    sentence: str


@dataclass(frozen=True)
class Line:
    """A chat as the page shows it."""

    chat: Chat
    kind: str
    access: str
    may_allow: bool
    may_deny: bool


@blueprint.get("")
def page() -> str:
    """The bot and its chats, those heard of last first."""
    database = services().database
    bot = Bots(database).newest()
    return render_template(
        "telegram/page.html",
        bot=bot,
        state=_state(bot),
        hides_groups=bot is not None and not bot.sees_all,
        lines=[_line(chat) for chat in Chats(database).newest(_SHOWN)],
        modes=[(mode, gettext(name)) for mode, name in _MODES.items()],
    )


@blueprint.post("/<chat_id>/access")
def set_access(chat_id: str) -> BaseResponse:
    """Allow or deny a chat."""
    Chats(services().database).set_access(_number(chat_id), _choice(Access, "access"))
    return redirect(url_for("chats.page", _anchor=f"chat{chat_id}"), 303)


@blueprint.post("/<chat_id>/mode")
def set_mode(chat_id: str) -> BaseResponse:
    """Choose which recordings of a chat become text."""
    Chats(services().database).set_mode(_number(chat_id), _choice(Mode, "mode"))
    return redirect(url_for("chats.page", _anchor=f"chat{chat_id}"), 303)


def has_telegram() -> bool:
    """True when there is anything for the page to show."""
    if services().settings.telegram.token is not None:
        return True
    return Bots(services().database).newest() is not None


def _state(bot: Bot | None) -> State:
    settings = services().settings
    if settings.telegram.token is None:
        return State("stuck", gettext("There is no bot: set `telegram.token` and start anew."))
    if not liveness.alive(settings.storage.data_dir, liveness.BOT):
        return State("stuck", gettext("The bot is not running. It starts with `pisar up`."))
    if bot is None:
        return State("stuck", gettext(_TROUBLES[Trouble.UNREACHABLE]))
    if bot.trouble:
        return State("stuck", gettext(_TROUBLES[bot.trouble]))
    return State("working", gettext("The bot takes recordings."))


def _line(chat: Chat) -> Line:
    allow = services().settings.telegram.allow
    is_open = allow == EVERYBODY or chat.id in allow
    if chat.access is Access.UNSET:
        words = gettext("allowed by the settings") if is_open else gettext("not allowed yet")
    elif chat.access is Access.ALLOWED:
        words = gettext("allowed")
    else:
        words = gettext("denied")
    is_allowed = chat.access is Access.ALLOWED or (chat.access is Access.UNSET and is_open)
    return Line(
        chat,
        gettext(_KINDS[chat.kind]),
        words,
        may_allow=not is_allowed,
        may_deny=chat.access is not Access.DENIED,
    )


def _number(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 16):
        raise AppError("not_found")
    return int(text)


def _choice(choices: type[_Choice], field: str) -> _Choice:
    try:
        return choices(request.form.get(field, ""))
    except ValueError:
        raise AppError("bad_request") from None
