"""The page of one job: it tells what happens by itself, disturbs nobody, and lets one listen."""

import re

from playwright.sync_api import Page, expect

from app.clock import utcnow
from tests.browser.conftest import Desk
from tests.browser.stage import SAID
from tests.speech import DATA

LONG_SAID = tuple(
    type(part)(part.start + 26 * turn, part.end + 26 * turn, part.text)
    for turn in range(12)
    for part in SAID
)


def polls(page: Page) -> list[str]:
    sent: list[str] = []
    page.on("request", lambda request: "/live" in request.url and sent.append(request.url))
    return sent


def is_playing(page: Page) -> bool:
    return bool(page.evaluate("!document.getElementById('sound').paused"))


def position(page: Page) -> float:
    return float(page.evaluate("document.getElementById('sound').currentTime"))


def test_a_job_is_followed_from_the_line_to_its_text_without_a_reload(desk: Desk) -> None:
    stage = desk.stage
    before, job = stage.hand_in("other.wav", b"other"), stage.hand_in("interview.m4a")
    page = desk.open(f"/jobs/{job.id}")
    page.evaluate("window.stays = true")
    state = page.locator("#job-state")
    expect(state).to_contain_text("Waiting – 2nd in line")
    stage.convert(before)
    expect(state).to_contain_text("Waiting – next in line")
    stage.begin(job)
    claim = stage.work(job, 0.41)
    expect(state).to_contain_text("Recognizing – 41%")
    expect(page).to_have_title("41% · interview.m4a · Pisar")
    assert page.get_by_role("progressbar").get_attribute("value") == "0.41"
    expect(page.locator("#favicon")).to_have_attribute("href", re.compile("active.svg$"))
    stage.end(claim)
    expect(state).to_contain_text("Done")
    expect(page.locator("#transcript")).to_contain_text("He was not an ill-disposed young man")
    expect(page).to_have_title("Done · interview.m4a · Pisar")
    expect(page.locator("#favicon")).to_have_attribute("href", re.compile("done.svg$"))
    expect(page.locator("#job-said")).to_have_text("Done")
    assert page.evaluate("window.stays")
    assert page.get_by_role("button", name="Cancel").count() == 0


def test_the_time_left_is_told_once_the_pace_is_known(desk: Desk) -> None:
    stage = desk.stage
    job = stage.hand_in("interview.m4a")
    stage.begin(job)
    claim = stage.work(job, 0.10)
    page = desk.open(f"/jobs/{job.id}")
    state = page.locator("#job-state")
    expect(state).to_contain_text("10%")
    assert "left" not in state.inner_text()
    page.wait_for_function("() => performance.now() > 6500")
    stage.queue.report(claim, 0.12, utcnow())
    expect(state).to_contain_text(re.compile(r"12%, about \d minutes left"))


def test_p21_no_more_is_asked_once_the_job_has_ended(desk: Desk) -> None:
    job = desk.stage.hand_in("interview.m4a")
    page = desk.open(f"/jobs/{job.id}")
    asked = polls(page)
    desk.stage.fail(job)
    expect(page.locator("#job-state")).to_contain_text("Failed")
    expect(page.locator("#job-verdict")).to_contain_text("The file is cut off")
    count = len(asked)
    page.wait_for_function(
        "from => performance.now() - from > 4500", arg=page.evaluate("performance.now()")
    )
    assert len(asked) == count


def test_cp03_folds_selection_and_focus_stay_while_the_page_follows(desk: Desk) -> None:
    stage = desk.stage
    job = stage.hand_in("interview.m4a")
    stage.begin(job)
    claim = stage.work(job, 0.2)
    page = desk.open(f"/jobs/{job.id}")
    page.get_by_text("Facts and files").click()
    page.get_by_role("heading", level=1).select_text()
    page.get_by_role("button", name="Cancel").focus()
    for share in (0.3, 0.4, 0.5):
        stage.queue.report(claim, share, utcnow())
        expect(page.locator("#job-state")).to_contain_text(f"{round(share * 100)}%")
    assert page.evaluate("getSelection().toString()").strip() == "interview.m4a"
    assert page.locator("#job-facts").is_visible()
    assert page.evaluate("document.activeElement.id") == "job-act"


def test_a_server_that_is_away_is_told_and_taken_back(desk: Desk) -> None:
    desk.faults.is_offline = True
    job = desk.stage.hand_in("interview.m4a")
    page = desk.open(f"/jobs/{job.id}")
    page.route("**/live?*", lambda route: route.abort("connectionrefused"))
    expect(page.locator(".toast")).to_have_text(
        "The server does not answer. What you see may be old."
    )
    page.unroute("**/live?*")
    expect(page.locator(".toast")).to_have_count(0)


def test_cm04_a_line_is_clicked_to_hear_it_and_the_text_follows(desk: Desk) -> None:
    job = desk.stage.hand_in("Sense and Sensibility.flac", (DATA / "english.flac").read_bytes())
    desk.stage.finish(job)
    page = desk.open(f"/jobs/{job.id}")
    third = page.get_by_text("He was not an ill-disposed young man")
    third.click()
    page.wait_for_function("() => document.getElementById('sound').currentTime > 12.2")
    assert is_playing(page)
    expect(third).to_have_attribute("aria-current", "true")
    page.get_by_role("link", name="Hear from 0:00").click()
    page.wait_for_function("() => document.getElementById('sound').currentTime < 5")
    expect(page.get_by_text("Mr. John Dashwood")).to_have_attribute("aria-current", "true")
    expect(page.locator("[aria-current=true]")).to_have_count(1)


def test_the_keyboard_alone_plays_pauses_and_goes_back(desk: Desk) -> None:
    job = desk.stage.hand_in("Sense and Sensibility.flac", (DATA / "english.flac").read_bytes())
    desk.stage.finish(job)
    page = desk.open(f"/jobs/{job.id}")
    page.get_by_role("link", name="Hear from 0:12").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('sound').currentTime > 12.1")
    assert is_playing(page)
    page.keyboard.press("KeyK")
    assert not is_playing(page)
    page.keyboard.press("KeyJ")
    assert position(page) < 4
    page.keyboard.press("KeyL")
    assert position(page) > 11


def test_marking_words_does_not_start_the_sound(desk: Desk) -> None:
    job = desk.stage.hand_in("Sense and Sensibility.flac", (DATA / "english.flac").read_bytes())
    desk.stage.finish(job)
    page = desk.open(f"/jobs/{job.id}")
    box = page.get_by_text("He was not an ill-disposed").bounding_box()
    assert box
    page.mouse.move(box["x"] + 5, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 15, steps=5)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()").startswith("He was")
    assert not is_playing(page)
    page.get_by_text("He was not an ill-disposed").click()
    page.wait_for_function("() => document.getElementById('sound').currentTime > 12")


def test_whoever_scrolled_away_to_read_is_left_alone(desk: Desk) -> None:
    job = desk.stage.hand_in("long.flac", (DATA / "english.flac").read_bytes())
    desk.stage.finish(job, LONG_SAID)
    page = desk.open(f"/jobs/{job.id}", viewport={"width": 900, "height": 400})
    page.get_by_text("But he was affected").first.click()
    expect(page.locator("[aria-current=true]")).to_have_count(1)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    there = page.evaluate("scrollY")
    page.wait_for_function("() => document.getElementById('sound').currentTime > 12.3")
    assert page.evaluate("scrollY") == there


def test_the_text_is_copied_without_its_times(desk: Desk) -> None:
    job = desk.stage.hand_in("Sense and Sensibility.flac")
    desk.stage.finish(job)
    page = desk.open(f"/jobs/{job.id}", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the text").click()
    expect(page.locator(".copied")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.split("\n\n") == [
        f"{SAID[0].text} {SAID[1].text}",
        f"{SAID[2].text} {SAID[3].text}",
    ]


def test_the_four_forms_are_downloaded(desk: Desk) -> None:
    job = desk.stage.hand_in("Совещание.flac")
    desk.stage.finish(job)
    page = desk.open(f"/jobs/{job.id}")
    for form in ("txt", "srt", "vtt", "json"):
        with page.expect_download() as download:
            page.get_by_role("link", name=form, exact=True).click()
        assert download.value.suggested_filename == f"Совещание.{form}"
        assert "Dashwood" in download.value.path().read_text(encoding="utf-8")


def test_p48_cancel_and_p15_revive_by_hand(desk: Desk) -> None:
    job = desk.stage.hand_in("interview.m4a")
    page = desk.open(f"/jobs/{job.id}", owner=True)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#job-state")).to_contain_text("Cancelled")
    page.get_by_role("button", name="Revive").click()
    expect(page.locator("#job-state")).to_contain_text("next in line")


def test_cp02_a_session_that_ended_leads_to_the_sign_in_page(desk: Desk) -> None:
    desk.faults.allowed.add(401)
    job = desk.stage.hand_in("dead.wav")
    desk.stage.kill(job)
    page = desk.open("/jobs", owner=True)
    page.context.clear_cookies(name="pisar")
    page.get_by_role("button", name="Revive dead.wav").click()
    expect(page).to_have_url(re.compile("/login"))
