"""The invitation, signing in, and the account, with scripts and without."""

import pytest
from playwright.sync_api import Page, expect

from app.clock import utcnow
from tests.browser.conftest import Desk

PASSWORD = "correct horse battery"


def become_owner(page: Page) -> None:
    page.get_by_label("Name").fill("scribe")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Become the owner").click()
    expect(page.get_by_role("link", name="scribe")).to_be_visible()


def test_the_link_alone_is_enough_and_the_address_forgets_it(desk: Desk) -> None:
    token = desk.stage.house.owners.invite(utcnow())
    # Once there is an owner there is no such page any more.
    desk.faults.allowed.add(404)
    page = desk.open(f"/setup#{token}")
    expect(page.get_by_label("Invitation")).to_be_hidden()
    assert token not in page.url
    become_owner(page)
    page.go_back()
    assert token not in page.url


def test_without_scripts_the_invitation_is_pasted(desk: Desk) -> None:
    token = desk.stage.house.owners.invite(utcnow())
    page = desk.open(f"/setup#{token}", java_script_enabled=False)
    page.get_by_label("Invitation").fill(token)
    become_owner(page)


@pytest.mark.parametrize("scripts", [True, False])
def test_the_owner_signs_in_makes_a_token_and_signs_out(desk: Desk, scripts: bool) -> None:
    owners = desk.stage.house.owners
    owners.accept_invitation(owners.invite(utcnow()), "scribe", PASSWORD, utcnow())
    desk.faults.allowed.add(401)
    page = desk.open("/account", java_script_enabled=scripts)
    page.get_by_label("Name").fill("scribe")
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("The name or the password is wrong.")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Name of the new token").fill("ci")
    page.get_by_role("button", name="Create a token").click()
    secret = page.locator("#new-token").inner_text()
    assert owners.tokens.peek(secret) is not None
    page.get_by_role("button", name="Revoke the token ci").click()
    expect(page.get_by_text("No tokens yet.")).to_be_visible()
    assert owners.tokens.peek(secret) is None
    page.get_by_role("button", name="Sign out", exact=True).click()
    page.goto("/account")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
