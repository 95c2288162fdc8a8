"""The page Telegram: how the bot fares, and who may use it."""

import re

import pytest
from flask import Flask

from app import liveness
from app.assembly import House
from app.chats import Access, Bots, ChatKind, Chats, Mode, Trouble
from app.liveness import Presence
from app.settings import Settings
from tests.web.conftest import Clock, Path, make_settings
from tests.web.visitor import Visitor

TOKEN = "123456:canary-canary-canary-canary-canary"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(tmp_path, telegram={"token": TOKEN, "allow": [12]})


def chats(house: House) -> Chats:
    return Chats(house.database)


def test_a_chat_is_allowed_and_denied_by_its_buttons(
    house: House, signed_in: Visitor, clock: Clock
) -> None:
    chats(house).seen(-500, ChatKind.SUPERGROUP, "Office", Mode.ALL, clock())
    page = signed_in.get("/telegram").text
    assert "Office" in page and "not allowed yet" in page
    answer = signed_in.post("/telegram/-500/access", {"access": "allowed"})
    assert (answer.status_code, answer.location) == (303, "/telegram#chat-500")
    assert chats(house).get(-500).access is Access.ALLOWED
    page = signed_in.get("/telegram").text
    assert "Allow Office" not in page and "Deny Office" in page
    signed_in.post("/telegram/-500/access", {"access": "denied"})
    assert chats(house).get(-500).access is Access.DENIED


def test_ct16_the_owner_chooses_which_recordings_become_text(
    house: House, signed_in: Visitor, clock: Clock
) -> None:
    chats(house).seen(-500, ChatKind.GROUP, "Office", Mode.ALL, clock())
    signed_in.post("/telegram/-500/mode", {"mode": "on_request"})
    assert chats(house).get(-500).mode is Mode.ON_REQUEST
    page = signed_in.get("/telegram").text
    assert re.search(r'value="on_request"\s+selected', page)


def test_what_the_settings_allow_is_told_and_can_be_denied(
    house: House, signed_in: Visitor, clock: Clock
) -> None:
    chats(house).seen(12, ChatKind.PRIVATE, "Alpha", Mode.ALL, clock())
    page = signed_in.get("/telegram").text
    assert "allowed by the settings" in page
    assert "Allow Alpha" not in page and "Deny Alpha" in page


def test_ct09_ct18_the_page_says_how_the_bot_fares(
    house: House, signed_in: Visitor, clock: Clock, settings: Settings
) -> None:
    bots = Bots(house.database)
    assert "The bot is not running" in signed_in.get("/telegram").text
    presence = Presence(settings.storage.data_dir, liveness.BOT)
    assert "Telegram cannot be reached" in signed_in.get("/telegram").text
    bot = bots.know(77, "scribe_bot", True, clock())
    page = signed_in.get("/telegram").text
    assert "The bot takes recordings." in page
    assert "@scribe_bot" in page
    assert "privacy mode" not in page
    bots.in_trouble(bot, Trouble.CONFLICT)
    assert "Another program reads" in signed_in.get("/telegram").text
    presence.close()


def test_ct15_the_page_tells_of_the_privacy_mode(
    house: House, signed_in: Visitor, clock: Clock
) -> None:
    Bots(house.database).know(77, "scribe_bot", False, clock())
    assert "privacy mode is on" in signed_in.get("/telegram").text


def test_ct08_the_page_holds_no_token(house: House, signed_in: Visitor, clock: Clock) -> None:
    Bots(house.database).know(77, "scribe_bot", False, clock())
    for url in ("/telegram", "/", "/account", "/jobs"):
        assert "canary" not in signed_in.get(url).text


def test_a_name_of_markup_stays_text(house: House, signed_in: Visitor, clock: Clock) -> None:
    chats(house).seen(9, ChatKind.PRIVATE, "<b>x</b>", Mode.ALL, clock())
    assert "<b>x" not in signed_in.get("/telegram").text


@pytest.mark.parametrize("number", ["x", "--5", "5" * 30, "٣"])
def test_a_chat_that_there_is_not(signed_in: Visitor, number: str) -> None:
    assert signed_in.post(f"/telegram/{number}/access", {"access": "allowed"}).status_code == 404
    assert signed_in.post("/telegram/5/access", {"access": "allowed"}).status_code == 404
    assert signed_in.post("/telegram/5/access", {"access": "king"}).status_code == 400


def test_the_way_there_is_shown_where_there_is_a_bot(
    house: House, signed_in: Visitor, app: Flask
) -> None:
    assert 'href="/telegram"' in signed_in.get("/account").text
    assert 'href="/telegram"' not in Visitor(app).get("/").text


class TestWithoutABot:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return make_settings(tmp_path)

    def test_nothing_leads_there_and_the_page_says_what_to_set(self, signed_in: Visitor) -> None:
        assert 'href="/telegram"' not in signed_in.get("/account").text
        assert "<code>telegram.token</code>" in signed_in.get("/telegram").text
