"""Deleting, undoing, the bin and pausing a step: with scripts, without, in both languages."""

from playwright.sync_api import Locator, Page, expect

from app.clock import utcnow
from app.job import Job, State, Step
from tests.browser.conftest import Desk
from tests.browser.stage import Stage
from tests.web.hands import sound

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
RUSSIAN = {"locale": "ru-RU"}


def row(page: Page, job: Job) -> Locator:
    return page.locator(f"#job-{job.id}")


def tab(page: Page, state: str) -> Locator:
    return page.locator(f"#tab-{state} .n")


def two_jobs(stage: Stage) -> tuple[Job, Job]:
    done = stage.hand_in("done.wav")
    stage.finish(done)
    return done, stage.hand_in("waiting.wav", sound(0.2))


def test_s31_delete_asks_nothing_and_undo_stands_in_its_place(desk: Desk) -> None:
    done, waiting = two_jobs(desk.stage)
    page = desk.open("/jobs", owner=True)
    page.evaluate("window.stays = true")
    page.get_by_role("button", name="Delete done.wav").click()
    expect(row(page, done)).to_have_count(0)
    expect(page.get_by_text("done.wav – in the bin until")).to_be_visible()
    expect(tab(page, "all")).to_have_text("1")
    assert desk.stage.queue.find(done.id) is None
    # The keyboard goes on where it was: Enter takes the deed back.
    undo = page.get_by_role("button", name="Bring back done.wav")
    expect(undo).to_be_focused()
    page.keyboard.press("Enter")
    expect(row(page, done)).to_contain_text("Done")
    expect(tab(page, "all")).to_have_text("2")
    expect(row(page, waiting)).to_be_visible()
    assert page.evaluate("window.stays")
    assert desk.stage.queue.get(done.id).state is State.DONE


def test_s31_delete_stops_a_running_job_and_the_bin_gives_it_back(desk: Desk) -> None:
    stage = desk.stage
    job = stage.hand_in("running.wav")
    held = stage.work(job, 0.4)
    page = desk.open("/jobs", owner=True, **RUSSIAN)
    page.get_by_role("button", name="Удалить: running.wav").click()
    expect(page.get_by_text("running.wav – в корзине до")).to_be_visible()
    assert not stage.queue.report(held, 0.5, utcnow())
    page.get_by_role("link", name="Корзина").click()
    expect(row(page, job)).to_contain_text("Отменено")
    page.get_by_role("button", name="Вернуть: running.wav").click()
    expect(row(page, job)).to_contain_text("Отменено")
    page.get_by_role("button", name="Возобновить running.wav").click()
    expect(row(page, job)).to_contain_text("Ожидание")


def test_s31_delete_and_undo_without_scripts(desk: Desk) -> None:
    done, waiting = two_jobs(desk.stage)
    page = desk.open("/jobs?state=done", owner=True, java_script_enabled=False)
    page.get_by_role("button", name="Delete done.wav").click()
    expect(page.get_by_text("done.wav – in the bin until")).to_be_visible()
    expect(row(page, done)).to_have_count(0)
    page.get_by_role("button", name="Bring back done.wav").click()
    expect(page).to_have_url(f"{desk.url}/jobs?state=done")
    expect(row(page, done)).to_be_visible()
    page.goto(f"/jobs/{waiting.id}")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("waiting.wav – in the bin until")).to_be_visible()
    page.get_by_role("link", name="Bin").click()
    page.get_by_role("button", name="Bring back waiting.wav").click()
    expect(page.get_by_text("The bin is empty.")).to_be_visible()


def test_s31_the_bin_on_a_phone_in_russian_without_scripts(desk: Desk) -> None:
    done, _ = two_jobs(desk.stage)
    desk.stage.queue.delete(done.id, utcnow())
    page = desk.open("/jobs?state=bin", owner=True, java_script_enabled=False, **RUSSIAN, **PHONE)
    button = page.get_by_role("button", name="Вернуть: done.wav")
    box = button.bounding_box()
    assert box
    assert box["height"] >= 44
    button.tap()
    expect(page.get_by_text("Корзина пуста.")).to_be_visible()


def test_cq02_two_tabs_that_race_both_tell_the_truth(desk: Desk) -> None:
    desk.faults.allowed.update((404, 409))
    stage = desk.stage
    done, waiting = two_jobs(stage)
    page = desk.open("/jobs", owner=True)
    other = desk.open("/jobs", owner=True)
    other.get_by_role("button", name="Delete done.wav").click()
    expect(other.get_by_text("done.wav – in the bin until")).to_be_visible()
    page.get_by_role("button", name="Delete done.wav").click()
    expect(page.get_by_text("done.wav – in the bin until")).to_be_visible()
    page.get_by_role("button", name="Bring back done.wav").click()
    expect(row(page, done)).to_contain_text("Done")
    other.get_by_role("button", name="Bring back done.wav").click()
    expect(row(other, done)).to_contain_text("It is not in the bin any more.")
    # A job that is watched leaves the other list by itself.
    other.get_by_role("button", name="Delete waiting.wav").click()
    expect(row(page, waiting)).to_have_count(0)


def test_cq20_a_page_that_stands_open_tells_that_its_job_is_in_the_bin(desk: Desk) -> None:
    desk.faults.allowed.add(404)
    job = desk.stage.hand_in()
    page = desk.open(f"/jobs/{job.id}", owner=True)
    stranger = desk.open(f"/jobs/{job.id}")
    desk.stage.queue.delete(job.id, utcnow())
    expect(page.locator("#job-state")).to_contain_text("in the bin until")
    expect(stranger.get_by_text("There is nothing here.")).to_be_visible()
    page.get_by_role("button", name="Bring back").click()
    expect(page.locator("#job-state")).to_contain_text("Cancelled")


def test_a_step_is_paused_and_resumed_where_the_queue_is_seen(desk: Desk) -> None:
    stage = desk.stage
    running = stage.hand_in("running.wav", sound(0.3))
    stage.work(running, 0.4)
    waiting = stage.hand_in("waiting.wav")
    page = desk.open("/jobs", owner=True)
    theirs = desk.open(f"/jobs/{waiting.id}", **RUSSIAN)
    expect(theirs.locator("#job-state")).to_contain_text("следующая на очереди")
    page.get_by_role("button", name="Pause: conversion").click()
    expect(page.locator("#jobs-head .notice")).to_contain_text("Paused by the owner since")
    expect(row(page, waiting)).to_contain_text("Paused")
    expect(row(page, running)).to_contain_text("Converting 40%")
    expect(theirs.locator("#job-state")).to_have_text("Приостановлено владельцем")
    page.get_by_role("button", name="Resume: conversion").click()
    expect(page.locator("#jobs-head .notice")).to_have_count(0)
    expect(row(page, waiting)).to_contain_text("Waiting")
    expect(theirs.locator("#job-state")).to_contain_text("следующая на очереди")


def test_a_step_is_paused_and_resumed_without_scripts(desk: Desk) -> None:
    desk.stage.hand_in("waiting.wav")
    page = desk.open("/jobs?state=created", owner=True, java_script_enabled=False, **RUSSIAN)
    page.get_by_role("button", name="Приостановить: преобразование").click()
    expect(page).to_have_url(f"{desk.url}/jobs?state=created")
    expect(page.get_by_text("Приостановлено владельцем с")).to_be_visible()
    assert list(desk.stage.queue.paused_steps()) == [Step.CONVERT]
    page.get_by_role("button", name="Продолжить: преобразование").click()
    expect(page.get_by_text("Приостановлено владельцем с")).to_have_count(0)
    assert desk.stage.queue.paused_steps() == {}


def test_a_list_that_stands_open_learns_of_a_pause_by_itself(desk: Desk) -> None:
    job = desk.stage.hand_in()
    page = desk.open("/jobs", owner=True)
    desk.stage.queue.pause_step(Step.CONVERT, utcnow())
    expect(page.get_by_role("button", name="Resume: conversion")).to_be_visible()
    expect(page.get_by_role("button", name="Pause: conversion")).to_have_count(0)
    expect(row(page, job)).to_contain_text("Paused")
