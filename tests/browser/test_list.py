"""The owner's list: rows change by themselves, one by one, and an action answers in its row."""

from playwright.sync_api import Locator, Page, expect

from app.clock import utcnow
from app.job import Job
from tests.browser.conftest import Desk
from tests.web.hands import sound


def row(page: Page, job: Job) -> Locator:
    return page.locator(f"#job-{job.id}")


def tab(page: Page, state: str) -> Locator:
    return page.locator(f"#tab-{state} .n")


def test_p15_revive_answers_in_its_own_row(desk: Desk) -> None:
    stage = desk.stage
    dead = stage.hand_in("dead.wav")
    stage.kill(dead)
    done = stage.hand_in("done.wav", sound(0.2))
    stage.finish(done)
    page = desk.open("/jobs", owner=True)
    page.evaluate("window.stays = true")
    expect(page.locator(".count-dead")).to_have_text("1")
    page.get_by_role("button", name="Revive dead.wav").click()
    expect(row(page, dead)).to_contain_text("Waiting")
    assert page.evaluate("document.activeElement.id") == f"job-{dead.id}-state"
    expect(tab(page, "dead")).to_have_text("0")
    expect(page.locator(".count-dead")).to_have_count(0)
    expect(tab(page, "created")).to_have_text("1")
    stage.work(dead, 0.5)
    expect(row(page, dead)).to_contain_text("Converting 50%")
    assert page.evaluate("window.stays")


def test_a_row_that_changed_meanwhile_says_so_and_shows_how_it_is(desk: Desk) -> None:
    desk.faults.allowed.add(409)
    stage = desk.stage
    dead = stage.hand_in("dead.wav")
    stage.kill(dead)
    page = desk.open("/jobs?state=dead", owner=True)
    stage.queue.revive(dead.id, utcnow())
    page.get_by_role("button", name="Revive dead.wav").click()
    expect(row(page, dead)).to_contain_text("Not revived: it is at work again already.")
    expect(row(page, dead)).to_contain_text("Waiting")


def test_cp03_what_changes_disturbs_no_other_row(desk: Desk) -> None:
    stage = desk.stage
    quiet = stage.hand_in("the quiet one.wav")
    stage.fail(quiet)
    busy = stage.hand_in("the busy one.wav", sound(0.2))
    page = desk.open("/jobs", owner=True)
    page.evaluate("id => { window.row = document.getElementById(id) }", f"job-{quiet.id}")
    row(page, quiet).locator(".detail").select_text()
    page.get_by_role("button", name="Revive the quiet one.wav").focus()
    stage.work(busy, 0.3)
    expect(row(page, busy)).to_contain_text("Converting 30%")
    newcomer = stage.hand_in("the new one.wav", sound(0.3))
    expect(row(page, newcomer)).to_be_visible()
    expect(tab(page, "all")).to_have_text("3")
    assert page.locator("#jobs-rows tr").first.get_attribute("id") == f"job-{newcomer.id}"
    assert "The file is cut off" in page.evaluate("getSelection().toString()")
    assert page.evaluate("document.activeElement.id") == f"job-{quiet.id}-revive"
    assert page.evaluate("id => window.row === document.getElementById(id)", f"job-{quiet.id}")


def test_cu14_the_list_says_that_no_worker_runs_until_one_does(desk: Desk) -> None:
    desk.stage.stop_worker()
    job = desk.stage.hand_in()
    page = desk.open("/jobs", owner=True)
    banner = page.locator("#jobs-head .notice")
    expect(banner).to_contain_text("No worker is running, so nothing moves.")
    assert row(page, job).locator("[data-tone=stuck]").count() == 1
    desk.stage.start_worker()
    expect(banner).to_have_count(0)
    expect(row(page, job).locator("[data-tone=waiting]")).to_have_count(1)


def test_without_scripts_a_dead_job_is_revived_and_the_list_comes_back(desk: Desk) -> None:
    stage = desk.stage
    dead = stage.hand_in("dead.wav")
    stage.kill(dead)
    page = desk.open("/jobs?state=dead", owner=True, java_script_enabled=False)
    page.get_by_role("button", name="Revive dead.wav").click()
    expect(page).to_have_url(f"{desk.url}/jobs?state=dead")
    expect(page.get_by_text("No dead jobs.")).to_be_visible()
    page.get_by_role("link", name="To convert 1").click()
    expect(row(page, dead)).to_contain_text("Waiting")


def test_a_touch_reaches_every_action_on_a_phone(desk: Desk) -> None:
    stage = desk.stage
    stage.fill()
    page = desk.open(
        "/jobs", owner=True, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True
    )
    for button in page.locator("main button").all():
        box = button.bounding_box()
        assert box
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= 360
    page.get_by_role("button", name="Revive planning meeting.mp4").tap()
    expect(page.locator(".count-dead")).to_have_count(0)
