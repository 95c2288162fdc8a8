"""Orders from other sites, told by what the browser says of itself."""

import pytest

from app.web.guard import is_foreign

HOST = "pisar.example:8080"


@pytest.mark.parametrize(
    ("site", "origin", "has_cookie", "foreign"),
    [
        ("same-origin", "", True, False),
        ("none", "", True, False),
        ("same-site", "", True, True),
        ("cross-site", "", False, True),
        ("cross-site", "http://pisar.example:8080", True, True),
        ("", "http://pisar.example:8080", True, False),
        ("", "http://PISAR.example:8080", True, False),
        ("", "http://pisar.example", True, True),
        ("", "https://evil.example", False, True),
        ("", "null", True, True),
        ("", "", True, True),
        ("", "", False, False),
    ],
)
def test_an_order_is_foreign(site: str, origin: str, has_cookie: bool, foreign: bool) -> None:
    assert is_foreign("POST", site, origin, HOST, has_cookie) is foreign
    assert is_foreign("DELETE", site, origin, HOST, has_cookie) is foreign
    assert is_foreign("GET", site, origin, HOST, has_cookie) is False
