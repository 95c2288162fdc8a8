"""A client that sends what a browser sends with a form of the page it is on."""

from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

PASSWORD = "correct horse battery"
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}
HTMX = {"HX-Request": "true", **SAME_SITE}


class Visitor:
    def __init__(self, app: Flask) -> None:
        self.client = app.test_client()

    def get(self, url: str, **more: Any) -> TestResponse:
        return self.client.get(url, headers={**SAME_SITE, **more.pop("headers", {})}, **more)

    def post(self, url: str, data: dict[str, Any] | None = None, **more: Any) -> TestResponse:
        headers = {**SAME_SITE, **more.pop("headers", {})}
        return self.client.post(url, data=data or {}, headers=headers, **more)

    def sign_in(self, name: str = "scribe", password: str = PASSWORD, **form: str) -> TestResponse:
        return self.post("/login", {"name": name, "password": password, **form})

    @property
    def cookie(self) -> str:
        found = self.client.get_cookie("pisar") or self.client.get_cookie("__Host-pisar")
        return found.value if found else ""
