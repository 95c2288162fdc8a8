"""Who may ask for what (CP08): every address is walked by everybody."""

import pytest
from flask import Flask

from app.assembly import House
from app.owners import Scope
from app.web import access
from app.web.access import Rule
from app.web.gate import INTAKE_PATHS
from app.web.verbs import hands_in_again
from tests.web.conftest import Clock
from tests.web.visitor import Visitor

OPEN = {
    "auth.login": access.anyone,
    "auth.sign_in": access.anyone,
    "auth.setup": access.anyone,
    "auth.accept_invitation": access.anyone,
    "health.lives": access.anyone,
    "health.can_serve": access.anyone,
    "preferences.save": access.anyone,
    "static": access.anyone,
    "upload.page": access.anyone,
    "upload.hand_in": access.hands_in,
    "upload.line": access.knows_id,
    "api.hand_in": access.hands_in,
    "api.show": access.knows_id,
    "api.transcript": access.knows_id,
    "api.cancel": access.knows_id,
    "api.listing": access.reads,
    "api.revive": access.manages,
    "api.delete": access.manages,
    "api.undelete": access.manages,
    "api.send_again": access.manages,
    "api.steps": access.reads,
    "api.pause": access.manages,
    "api.resume": access.manages,
    "links.page": access.holds_link,
    "links.hand_in": access.holds_link,
    "files.stored": access.knows_id,
    "files.audio": access.knows_id,
    "files.source": access.knows_id,
    "jobs.page": access.knows_id,
    "jobs.live": access.knows_id,
    "verbs.cancel": access.knows_id,
    "verbs.again": hands_in_again,
}
"""Every view that somebody else than the owner may reach, and by what right."""


def walk(app: Flask) -> list[tuple[str, str, str]]:
    """Each endpoint with a method and an address of it."""
    found = []
    for rule in app.url_map.iter_rules():
        values = dict.fromkeys(rule.arguments, "x")
        _, url = rule.build(values) or ("", rule.rule)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            found.append((rule.endpoint, method, url))
    return found


def test_cp08_what_is_open_is_listed_and_all_else_is_the_owners(app: Flask) -> None:
    rules: dict[str, Rule] = {
        endpoint: access.rule_of(app, endpoint) for endpoint in app.view_functions
    }
    opened = {name: rule for name, rule in rules.items() if rule is not access.owner}
    assert opened == OPEN


def test_cp08_nobody_reaches_what_is_the_owners(app: Flask) -> None:
    client = app.test_client()
    for endpoint, method, url in walk(app):
        if access.rule_of(app, endpoint) is access.owner:
            answer = client.open(url, method=method)
            assert answer.status_code in (303, 401), (endpoint, answer.status_code)


def test_cp08_no_order_comes_from_another_site(app: Flask, signed_in: Visitor) -> None:
    cases = (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    )
    for endpoint, method, url in walk(app):
        if method == "GET":
            continue
        for headers in cases:
            answer = signed_in.client.open(url, method=method, headers=headers)
            assert answer.status_code == 403, (endpoint, headers, answer.status_code)


def test_cp08_a_token_reaches_only_its_scope(app: Flask, house: House, clock: Clock) -> None:
    client = app.test_client()
    needed = {access.reads: Scope.READ, access.manages: Scope.MANAGE}
    for scope in Scope:
        _, secret = house.owners.tokens.create(f"only-{scope}", {scope}, clock())
        bearer = {"Authorization": f"Bearer {secret}"}
        for endpoint, method, url in walk(app):
            rule = access.rule_of(app, endpoint)
            answer = client.open(url, method=method, headers=bearer)
            if rule is access.owner or needed.get(rule, scope) is not scope:
                assert answer.status_code == 403, (scope, endpoint, answer.status_code)
            elif rule in needed:
                assert answer.status_code not in (401, 403), (scope, endpoint)


def test_cp08_an_unknown_token_is_refused_everywhere(app: Flask) -> None:
    client = app.test_client()
    for endpoint, method, url in walk(app):
        answer = client.open(url, method=method, headers={"Authorization": "Bearer pisar_x"})
        assert answer.status_code in (303, 401), (endpoint, answer.status_code)


def test_cp08_a_page_is_not_changed_by_looking(app: Flask) -> None:
    verbs = {"logout", "sign_in", "end_session", "hand_in", "save"}
    verbs |= {
        "revive",
        "cancel",
        "delete",
        "undelete",
        "again",
        "send_again",
        "pause",
        "resume",
        "make",
    }
    for endpoint, method, _ in walk(app):
        if endpoint.partition(".")[2] in verbs:
            assert method != "GET", endpoint


def test_the_gate_knows_every_address_that_takes_recordings(app: Flask) -> None:
    takes = {
        rule.rule
        for rule in app.url_map.iter_rules()
        if access.rule_of(app, rule.endpoint) is access.hands_in and not rule.arguments
    }
    assert takes == INTAKE_PATHS


@pytest.mark.parametrize("url", ["/", "/jobs", "/nothing", "/api/jobs", "/api/x", "/healthz"])
def test_every_answer_has_the_strict_headers(visitor: Visitor, url: str) -> None:
    headers = visitor.get(url).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
