"""Handing in by hand: chosen, dropped, refused, interrupted, repeated, and without scripts."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from app.queue.port import JobFilter
from tests.browser.conftest import Desk
from tests.web.hands import sound

LIMIT = 40 * 1024 * 1024
SLOW = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 6_000_000}
DROP = """([names, size]) => {
    const held = new DataTransfer();
    names.forEach((name, number) => {
        const bytes = new Uint8Array(size);
        bytes[0] = number + 1;
        held.items.add(new File([bytes], name));
    });
    const target = document.getElementById("drop");
    for (const kind of ["dragenter", "dragover", "drop"]) {
        const how = {dataTransfer: held, bubbles: true, cancelable: true};
        target.dispatchEvent(new DragEvent(kind, how));
    }
}"""
WATCH_BARS = """() => {
    window.seen = [];
    const handed = document.getElementById("handed");
    new MutationObserver(() => {
        for (const bar of handed.querySelectorAll("progress")) window.seen.push(bar.value);
    }).observe(handed, {subtree: true, childList: true, characterData: true});
}"""


@pytest.fixture
def settings_of_intake() -> dict[str, object]:
    return {"max_size": LIMIT}


def file(name: str, data: bytes | None = None) -> dict[str, object]:
    return {"name": name, "mimeType": "", "buffer": sound() if data is None else data}


def choose(page: Page, *files: dict[str, object]) -> None:
    page.locator("#file").set_input_files(list(files))  # type: ignore[arg-type]


def rows(page: Page) -> list[str]:
    return page.locator("#handed-list > li").all_inner_texts()


def names(desk: Desk) -> list[str]:
    page = desk.stage.queue.page(JobFilter(), before=None, limit=100)
    return [job.display_name for job in page.jobs]


def slow_down(page: Page) -> None:
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW)


def test_one_recording_leads_to_its_own_page(desk: Desk) -> None:
    page = desk.open("/")
    choose(page, file("запись № 1.wav"))
    expect(page).to_have_url(re.compile("/jobs/[a-z0-9]{15}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("запись № 1.wav")
    expect(page.locator("#job-state")).to_contain_text("next in line")


def test_dropped_recordings_are_sent_in_turn_each_with_its_own_progress(desk: Desk) -> None:
    page = desk.open("/")
    page.evaluate(WATCH_BARS)
    slow_down(page)
    page.evaluate(DROP, [["one.wav", "two.wav", "three.wav"], 3_000_000])
    links = page.locator("#handed-list a.name")
    expect(links).to_have_count(3, timeout=20_000)
    expect(page.locator("#handed-list .status")).to_have_count(3)
    expect(page.locator("#upload-said")).to_have_text("three.wav: Handed in")
    assert sorted(names(desk)) == ["one.wav", "three.wav", "two.wav"]
    between = {value for value in page.evaluate("window.seen") if 0 < value < 1}
    assert len(between) > 3
    links.first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("three.wav")


def test_cu14_the_line_of_a_recording_corrects_itself(desk: Desk) -> None:
    desk.stage.stop_worker()
    page = desk.open("/")
    choose(page, file("a.wav"), file("b.wav", sound(0.5)))
    lines = page.locator("#handed-list .line")
    expect(lines.first).to_contain_text("no worker is running")
    desk.stage.start_worker()
    expect(lines.first).to_contain_text("in line")
    expect(lines.last).to_contain_text("next in line")


def test_cu03_too_large_and_empty_files_are_refused_before_they_are_sent(desk: Desk) -> None:
    page = desk.open("/")
    expect(page.locator("#limits")).to_have_text(
        "Any sound or video, up to 40 MB and 6 hours each."
    )
    sent = []
    page.on("request", lambda request: sent.append(request.method))
    page.evaluate(DROP, [["much.wav"], LIMIT + 1])
    page.evaluate(DROP, [["nothing.wav"], 0])
    assert "Larger than 40 MB: not sent." in rows(page)[1]
    assert "The file is empty: not sent." in rows(page)[0]
    assert "POST" not in sent


def test_cu03_an_answer_in_html_from_a_proxy_is_told_in_words(desk: Desk) -> None:
    desk.faults.allowed |= {413, 502}
    page = desk.open("/")

    def answer(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
            return
        status = 413 if "large.wav" in (route.request.post_data or "") else 502
        route.fulfill(status=status, content_type="text/html", body="<h1>nginx</h1>")

    page.route("**/*", answer)
    choose(page, file("large.wav"), file("small.wav"))
    expect(page.locator("#handed-list > li").last).to_contain_text(
        "The server takes no file as large as this."
    )
    small = page.locator("#handed-list > li").first
    expect(small).to_contain_text("The server refused the file (answer 502).")
    page.unroute("**/*")
    small.get_by_role("button", name="Try again").click()
    expect(small.locator("a.name")).to_have_text("small.wav")


def test_cu04_a_lost_connection_keeps_the_file_for_another_try(desk: Desk) -> None:
    desk.faults.is_offline = True
    page = desk.open("/")
    page.route("**/", lambda route: route.abort("connectionreset"))
    choose(page, file("long talk.wav"), file("short talk.wav", b"other"))
    lost = "The connection was lost. The file is still here: try again."
    expect(page.locator("#handed-list .line")).to_have_text([lost, lost])
    first = page.locator("#handed-list > li").last
    page.unroute("**/")
    first.get_by_role("button", name="Try again").click()
    expect(first.locator("a.name")).to_have_text("long talk.wav")
    assert names(desk) == ["long talk.wav"]


def test_a_refusal_of_the_service_is_told_in_its_words(desk: Desk) -> None:
    desk.faults.allowed.add(422)
    page = desk.open("/")
    page.locator("#language").evaluate("select => select.append(new Option('x', 'tlh'))")
    page.locator("#language").select_option("tlh")
    choose(page, file("a.wav"))
    expect(page.locator("#handed-list")).to_contain_text(
        "The speech engine does not know this language. Choose one from the list."
    )
    assert names(desk) == []


def test_leaving_while_a_recording_is_sent_asks_first(desk: Desk) -> None:
    page = desk.open("/")
    page.get_by_role("heading").click()
    slow_down(page)
    page.evaluate(DROP, [["long.wav", "longer.wav"], 30_000_000])
    expect(page.locator("#handed-list .line").last).to_contain_text("%")
    with page.expect_event("dialog") as asked:
        page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    page.get_by_role("button", name=re.compile("Stop: long.wav")).click()
    page.get_by_role("button", name=re.compile("Stop: longer.wav")).click()
    expect(page.locator("#handed-list .line", has_text="Stopped.")).to_have_count(2)
    with page.expect_event("close"):
        page.close(run_before_unload=True)
    assert names(desk) == []


def test_i10_the_same_recording_again_is_noticed_and_asked_about(desk: Desk) -> None:
    page = desk.open("/")
    choose(page, file("talk.wav"), file("other.wav", sound(0.7)))
    expect(page.locator("#handed-list a.name")).to_have_count(2)
    choose(page, file("talk, again.wav"))
    first = page.locator("#handed-list > li").first
    expect(first).to_contain_text("You handed this in before.")
    assert len(names(desk)) == 2
    first.get_by_role("button", name="Transcribe it again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("talk.wav")
    assert len(names(desk)) == 3


def test_without_scripts_a_form_hands_in_and_the_page_renews_itself(desk: Desk) -> None:
    page = desk.open("/", java_script_enabled=False)
    choose(page, file("one.wav"))
    page.locator("#language").select_option("ru")
    page.get_by_role("button", name="Hand in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("one.wav")
    assert "Russian, as chosen" in page.locator("aside").inner_text()
    [job] = desk.stage.queue.page(JobFilter(), before=None, limit=2).jobs
    desk.stage.finish(job)
    expect(page.locator("#job-state")).to_contain_text("Done", timeout=15_000)
    expect(page.locator("#transcript")).to_contain_text("John Dashwood")


def test_without_scripts_several_recordings_are_listed_after(desk: Desk) -> None:
    page = desk.open("/", java_script_enabled=False)
    choose(page, file("one.wav"), file("two.wav", sound(0.3)))
    page.get_by_role("button", name="Hand in").click()
    expect(page.locator("#handed-list a.name")).to_have_text(["one.wav", "two.wav"])
