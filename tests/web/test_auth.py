"""Signing in and out, the invitation's page, the account."""

import re
from pathlib import Path

import pytest
from flask import Flask

from app.assembly import House
from app.owners import Scope
from app.settings import Settings
from tests.web.conftest import Clock, make_settings
from tests.web.visitor import HTMX, PASSWORD, Visitor

EVIL_NEXTS = [
    "//evil.example/",
    "/\\evil.example/",
    "/\t/evil.example/",
    "\t//evil.example/",
    "https:evil.example",
    "https:/evil.example",
    "https://evil.example/",
    "///evil.example",
    "javascript:alert(1)",
    "/\n/evil.example",
    "\\\\evil.example",
]


def test_the_owner_signs_in_and_out(signed_in: Visitor) -> None:
    assert signed_in.get("/jobs").status_code == 200
    assert signed_in.post("/logout").status_code == 303
    assert signed_in.cookie == ""
    assert signed_in.get("/jobs").status_code == 303


def test_a_copied_cookie_is_worth_nothing_after_signing_out(app: Flask, signed_in: Visitor) -> None:
    thief = Visitor(app)
    thief.client.set_cookie("pisar", signed_in.cookie)
    assert thief.get("/jobs").status_code == 200
    signed_in.post("/logout")
    assert thief.get("/jobs").status_code == 303


def test_signing_in_gives_a_new_session_and_ends_the_old(app: Flask, signed_in: Visitor) -> None:
    before = signed_in.cookie
    signed_in.sign_in()
    assert signed_in.cookie != before
    thief = Visitor(app)
    thief.client.set_cookie("pisar", before)
    assert thief.get("/jobs").status_code == 303


def test_a_planted_cookie_does_not_become_the_session(app: Flask, owner: str) -> None:
    visitor = Visitor(app)
    visitor.client.set_cookie("pisar", "planted")
    visitor.sign_in()
    assert visitor.cookie not in ("", "planted")


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(
    visitor: Visitor, owner: str
) -> None:
    words = visitor.sign_in().headers["Set-Cookie"]
    assert "HttpOnly" in words and "SameSite=Lax" in words and "Path=/" in words
    assert "Domain" not in words


def test_a_wrong_password_says_so_and_keeps_the_name(visitor: Visitor, owner: str) -> None:
    answer = visitor.sign_in(password="wrong password!")
    assert answer.status_code == 401
    assert "The name or the password is wrong." in answer.text
    assert 'value="scribe"' in answer.text and "wrong password!" not in answer.text
    assert visitor.cookie == ""


def test_too_many_tries_say_how_long_to_wait(visitor: Visitor, owner: str) -> None:
    for _ in range(5):
        visitor.sign_in(password="wrong password!")
    answer = visitor.sign_in()
    assert answer.status_code == 429 and answer.headers["Retry-After"] == "2"
    assert "Too many tries" in answer.text


@pytest.mark.parametrize("where", EVIL_NEXTS)
def test_next_never_leaves_the_site(visitor: Visitor, owner: str, where: str) -> None:
    assert visitor.sign_in(next=where).location == "/"


def test_next_leads_back_to_the_page_that_was_asked_for(visitor: Visitor, owner: str) -> None:
    asked = visitor.get("/jobs?state=dead")
    assert asked.status_code == 303
    assert asked.location == "/login?next=/jobs?state%3Ddead"
    form = visitor.get(asked.location).text
    assert 'name="next" value="/jobs?state=dead"' in form
    assert visitor.sign_in(next="/jobs?state=dead").location == "/jobs?state=dead"


@pytest.mark.parametrize(("method", "url"), [("get", "/jobs"), ("post", "/jobs/x/revive")])
def test_cp02_a_script_without_a_session_is_sent_to_sign_in_as_a_whole_page(
    visitor: Visitor, owner: str, method: str, url: str
) -> None:
    here = {"HX-Current-URL": "http://localhost/jobs?state=dead", **HTMX}
    answer = getattr(visitor, method)(url, headers=here)
    assert answer.status_code == 401
    assert answer.headers["HX-Redirect"] == "/login?next=/jobs?state%3Ddead"
    assert answer.text == ""


def test_cp02_a_foreign_page_is_not_returned_to(visitor: Visitor, owner: str) -> None:
    here = {"HX-Current-URL": "http://evil.example/jobs", **HTMX}
    assert visitor.get("/jobs", headers=here).headers["HX-Redirect"] == "/login"


def test_the_invitation_is_taken_out_of_the_address_by_a_script_of_ours(visitor: Visitor) -> None:
    page = visitor.get("/setup").text
    script = re.search(r'src="(/static/setup\.js)"', page)
    assert script
    with visitor.get(script[1]) as answer:
        assert "location.hash" in answer.text


def test_the_invitation_makes_the_owner_and_signs_in(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    form = {"invitation": house.owners.invite(clock()), "name": "scribe", "password": PASSWORD}
    answer = visitor.post("/setup", form)
    assert answer.status_code == 303
    assert visitor.get("/jobs").status_code == 200
    assert visitor.get("/setup").status_code == 404
    assert visitor.post("/setup", form).status_code == 410


def test_an_ended_invitation_names_the_command_for_another(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    token = house.owners.invite(clock())
    clock.go_on(1801)
    answer = visitor.post("/setup", {"invitation": token, "name": "scribe", "password": PASSWORD})
    assert answer.status_code == 410 and "pisar owner invite" in answer.text


def test_a_short_password_comes_back_with_the_form(
    visitor: Visitor, house: House, clock: Clock
) -> None:
    token = house.owners.invite(clock())
    answer = visitor.post("/setup", {"invitation": token, "name": "scribe", "password": "short"})
    assert answer.status_code == 422 and "at least 12 characters" in answer.text
    assert token in answer.text and 'value="scribe"' in answer.text


def test_a_session_ends_when_idle_but_a_poll_does_not_keep_it(
    signed_in: Visitor, settings: Settings, clock: Clock
) -> None:
    for _ in range(3):
        clock.go_on(settings.panel.session_idle / 2 - 1)
        signed_in.get("/jobs", headers=HTMX)
    assert signed_in.get("/jobs").status_code == 303


def test_a_session_in_use_goes_on(signed_in: Visitor, settings: Settings, clock: Clock) -> None:
    for _ in range(3):
        clock.go_on(settings.panel.session_idle - 1)
        assert signed_in.get("/jobs").status_code == 200


def test_one_session_can_be_signed_out_from_another(app: Flask, signed_in: Visitor) -> None:
    other = Visitor(app)
    other.client.post(
        "/login",
        data={"name": "scribe", "password": PASSWORD},
        headers={"User-Agent": "Phone", "Sec-Fetch-Site": "same-origin"},
    )
    page = signed_in.get("/account").text
    entry = page[page.rindex("<li>", 0, page.index("Phone")) :]
    action = re.search(r'action="(/account/sessions/[a-z0-9]{15}/end)"', entry)
    assert action and signed_in.post(action[1]).status_code == 303
    assert other.get("/account").status_code == 303
    assert signed_in.get("/account").status_code == 200


def test_all_other_sessions_can_be_signed_out(app: Flask, signed_in: Visitor) -> None:
    other = Visitor(app)
    other.sign_in()
    assert signed_in.post("/account/sessions/end-others").status_code == 303
    assert other.get("/account").status_code == 303
    assert signed_in.get("/account").status_code == 200


def test_the_password_is_changed_and_other_sessions_end(app: Flask, signed_in: Visitor) -> None:
    other = Visitor(app)
    other.sign_in()
    form = {"current": PASSWORD, "password": "another long password"}
    answer = signed_in.post("/account/password", form)
    assert answer.status_code == 303
    assert "The password is changed." in signed_in.get(answer.location).text
    assert other.get("/account").status_code == 303
    assert Visitor(app).sign_in().status_code == 401


def test_a_wrong_present_password_changes_nothing(app: Flask, signed_in: Visitor) -> None:
    form = {"current": "wrong password!", "password": "another long password"}
    answer = signed_in.post("/account/password", form)
    assert answer.status_code == 401 and "The name or the password is wrong." in answer.text
    assert Visitor(app).sign_in().status_code == 303


def test_a_token_is_shown_once_and_works_until_revoked(
    app: Flask, signed_in: Visitor, clock: Clock
) -> None:
    made = signed_in.post("/account/tokens", {"name": "ci", "scope": ["read", "intake"]}).text
    secret = re.search(r"pisar_[\w-]{43}", made)
    assert secret and secret[0] not in signed_in.get("/account").text
    program = app.test_client()
    bearer = {"Authorization": f"Bearer {secret[0]}"}
    assert program.get("/api/jobs", headers=bearer).status_code == 200
    action = re.search(r'action="(/account/tokens/[a-z0-9]{15}/revoke)"', made)
    assert action and signed_in.post(action[1]).status_code == 303
    assert program.get("/api/jobs", headers=bearer).status_code == 401


def test_a_token_for_nothing_is_not_made(signed_in: Visitor, house: House) -> None:
    answer = signed_in.post("/account/tokens", {"name": "ci"})
    assert answer.status_code == 422 and "at least one thing" in answer.text
    assert house.owners.tokens.all() == []


def test_a_token_cannot_open_the_account(app: Flask, house: House, clock: Clock) -> None:
    _, secret = house.owners.tokens.create("ci", set(Scope), clock())
    bearer = {"Authorization": f"Bearer {secret}"}
    assert app.test_client().get("/account", headers=bearer).status_code == 403


def test_a_cookie_beside_a_token_counts_for_nothing(
    signed_in: Visitor, house: House, clock: Clock
) -> None:
    _, secret = house.owners.tokens.create("ci", {Scope.INTAKE}, clock())
    bearer = {"Authorization": f"Bearer {secret}"}
    assert signed_in.get("/api/jobs", headers=bearer).status_code == 403


def test_a_remember_cookie_of_nobodys_making_means_nothing(visitor: Visitor, owner: str) -> None:
    for value in ("a|b", f"{owner}|0", "x"):
        visitor.client.set_cookie("remember_token", value)
        assert visitor.get("/jobs").status_code == 303


class TestOverHttps:
    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return make_settings(tmp_path, server={"public_url": "https://pisar.example"})

    def test_the_cookie_is_bound_to_this_host_and_to_https(
        self, visitor: Visitor, owner: str
    ) -> None:
        words = visitor.sign_in().headers["Set-Cookie"]
        assert words.startswith("__Host-pisar=")
        assert "Secure" in words and "Path=/" in words and "Domain" not in words
