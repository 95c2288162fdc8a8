"""Every page in both themes and languages, on a desk and on a phone: nothing for axe to find."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from app.job import Job
from tests.browser.conftest import Desk
from tests.browser.stage import HOSTILE, LONG_NAME

DESK = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
VARIANTS: dict[str, dict[str, Any]] = {
    "desk-light-en": {"viewport": DESK, "color_scheme": "light", "locale": "en-GB"},
    "desk-dark-ru": {"viewport": DESK, "color_scheme": "dark", "locale": "ru-RU"},
    "phone-light-ru": {"viewport": PHONE, "color_scheme": "light", "locale": "ru-RU"},
    "phone-dark-en": {"viewport": PHONE, "color_scheme": "dark", "locale": "en-GB"},
}


def paths(jobs: dict[str, Job]) -> list[str]:
    handed = "&".join(f"job={jobs[name].id}" for name in ("done", "recognizing", "failed"))
    return [
        "/",
        f"/?{handed}",
        "/jobs",
        "/jobs?state=dead",
        "/jobs?state=converted",
        "/jobs?state=bin",
        f"/jobs?binned={jobs['binned'].id}",
        *(f"/jobs/{job.id}" for job in jobs.values()),
        f"/jobs/{jobs['done'].id}?same=1",
        "/account",
        "/nothing-here",
    ]


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{item['id']}: {node['html'][:200]}" for item in found for node in item["nodes"]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_axe_finds_nothing_and_nothing_sticks_out(desk: Desk, variant: str) -> None:
    desk.faults.allowed.add(404)
    jobs = desk.stage.fill()
    desk.stage.chats()
    page = desk.open("/", owner=True, **VARIANTS[variant])
    for path in [*paths(jobs), "/telegram", desk.stage.link()]:
        page.goto(path)
        assert violations(page) == [], path
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{path} sticks out by {wide} px"


def test_axe_finds_nothing_on_the_ways_in(desk: Desk) -> None:
    for path in ("/login", "/setup"):
        page = desk.open(path)
        assert violations(page) == [], path


def test_axe_would_have_found_a_missing_label(desk: Desk) -> None:
    page = desk.open("/login")
    page.evaluate("document.querySelector('label[for=name]').remove()")
    assert any(found.startswith("label:") for found in violations(page))


def test_cu08_cp01_markup_in_names_texts_and_errors_stays_text(desk: Desk) -> None:
    stage = desk.stage
    jobs = stage.fill()
    failed = stage.hand_in(f"{HOSTILE}.mp3", b"one more")
    stage.fail(failed, "not_media", HOSTILE)
    page = desk.open("/jobs", owner=True)
    assert page.get_by_role("link", name=f"{HOSTILE}.ogg", exact=True).is_visible()
    page.goto(f"/jobs/{jobs['hostile'].id}")
    assert page.get_by_role("heading", level=1).inner_text() == f"{HOSTILE}.ogg"
    assert page.locator("#transcript p").inner_text() == HOSTILE
    page.goto(f"/jobs/{failed.id}")
    page.get_by_text("In the machine's words").click()
    assert page.locator("code", has_text=HOSTILE).first.is_visible()
    page.goto(f"/?job={failed.id}")
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ('запись "встречи" №1.ogg', "запись _встречи_ №1.ogg"),
        ("会议录音.ogg", "会议录音.ogg"),
        ("....", "recording"),
        (LONG_NAME, LONG_NAME[:40]),
    ],
)
def test_cu02_a_name_is_shown_as_sent_and_the_download_bears_it(
    desk: Desk, name: str, kept: str
) -> None:
    job = desk.stage.hand_in(name)
    page = desk.open(f"/jobs/{job.id}")
    assert page.get_by_role("heading", level=1).inner_text() == name
    page.get_by_text("Facts and files").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="the file as it came").click()
    assert download.value.suggested_filename.startswith(kept)


def test_cp10_times_are_in_the_readers_zone_from_the_first_page_on(desk: Desk) -> None:
    job = desk.stage.hand_in()
    page = desk.open(f"/jobs/{job.id}", timezone_id="Asia/Vladivostok")
    first = page.locator("#job-history time").first.inner_text()
    assert page.locator(".zone").inner_text() == "Times: Asia/Vladivostok"
    page.reload()
    assert page.locator("#job-history time").first.inner_text() == first
    assert page.locator("html").get_attribute("data-zone") == "Asia/Vladivostok"
    there = job.created.astimezone(ZoneInfo("Asia/Vladivostok"))
    assert first.endswith(f"{there:%H:%M}")


def test_language_and_theme_are_chosen_in_the_footer_and_kept(desk: Desk) -> None:
    page = desk.open("/login")
    page.get_by_role("button", name="Русский").click()
    assert page.get_by_role("heading", name="Войти").is_visible()
    page.get_by_role("button", name="Тёмное").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(230, 226, 217)"
    page.goto("/")
    assert page.locator("html").get_attribute("lang") == "ru"
    assert page.locator("html").get_attribute("data-theme") == "dark"
