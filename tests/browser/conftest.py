"""A real Chromium before the real server; whatever it complains of fails the test."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, Response

from tests.browser.stage import Stage, serving

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
INSTALL = "sudo apt-get install -y chromium fonts-noto-core"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    if not CHROMIUM.exists():
        if os.environ.get("CI") == "true":
            pytest.fail(f"there is no Chromium: {INSTALL}")
        pytest.skip(f"there is no Chromium; install it with: {INSTALL}")
    return {
        **browser_type_launch_args,
        "executable_path": str(CHROMIUM),
        "args": [
            "--autoplay-policy=no-user-gesture-required",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-sync",
            "--no-first-run",
        ],
    }


@dataclass
class Faults:
    """What a page complained of; a test that provokes an answer on purpose allows its status."""

    found: list[str] = field(default_factory=list)
    allowed: set[int] = field(default_factory=set)
    is_offline: bool = False

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"script error: {error}"))
        page.on("dialog", self._dialog)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def _console(self, message: ConsoleMessage) -> None:
        # The browser repeats failed loads here, without their status; those are judged below.
        is_load = "Failed to load resource" in message.text
        # htmx tells of a poll without an answer here as well as on the page.
        is_poll = self.is_offline and message.text.startswith("htmx:")
        if message.type == "error" and not (is_load or is_poll):
            self.found.append(f"console: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        if dialog.type != "beforeunload":
            self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _failed(self, request: Request) -> None:
        # A player gives up a range it no longer needs, a page the poll that it leaves behind.
        if request.failure != "net::ERR_ABORTED" and not self.is_offline:
            self.found.append(f"not loaded: {request.url} ({request.failure})")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.allowed:
            self.found.append(f"{response.status}: {response.url}")


@dataclass
class Desk:
    """Opens pages as the owner or as anybody."""

    stage: Stage
    url: str
    faults: Faults
    open: Callable[..., Page]


@pytest.fixture
def settings_of_intake() -> dict[str, object]:
    """What a test file changes of the intake's settings."""
    return {}


@pytest.fixture
def desk(browser: Browser, tmp_path: Path, settings_of_intake: dict[str, object]) -> Iterator[Desk]:
    faults = Faults()
    contexts = []
    with serving(tmp_path / "data", **settings_of_intake) as (stage, url):
        stage.start_worker()

        def open_page(path: str = "/", *, owner: bool = False, **options: Any) -> Page:
            options = {"locale": "en-GB", "timezone_id": "Europe/Moscow"} | options
            context = browser.new_context(base_url=url, **options)
            contexts.append(context)
            if owner:
                context.add_cookies([{"name": "pisar", "value": stage.session(), "url": url}])
            page = context.new_page()
            page.set_default_timeout(10_000)
            faults.watch(page)
            page.goto(path)
            return page

        yield Desk(stage, url, faults, open_page)
        for context in contexts:
            context.close()
        stage.stop_worker()
    assert faults.found == []
