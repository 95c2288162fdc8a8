"""Photographs every page in both themes, both languages, on a desk and on a phone, to be looked at.

python -m tests.browser.screenshots FOLDER            every page with staged jobs
python -m tests.browser.screenshots --readme FILE     the picture of README: one real job
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from app.clock import utcnow
from app.job import State, Step
from app.settings import load
from tests.browser.stage import Stage, serving
from tests.speech import DATA

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}


def photograph(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        with serving(Path(scratch) / "empty") as (stage, url):
            _shoot(browser, stage, url, {"empty-upload": "/", "empty-jobs": "/jobs"}, folder)
        with serving(Path(scratch) / "full") as (stage, url):
            stage.start_worker()
            jobs = stage.fill()
            pages = {"upload": "/", "jobs": "/jobs", "jobs-dead": "/jobs?state=dead"}
            pages |= {f"job-{name}": f"/jobs/{job.id}" for name, job in jobs.items()}
            pages |= {"account": "/account", "missing": "/nothing-here"}
            stage.chats()
            pages |= {"telegram": "/telegram", "link": stage.link()}
            ids = "&job=".join(jobs[name].id for name in ("done", "recognizing", "failed"))
            pages["handed"] = f"/?job={ids}"
            pages["same"] = f"/jobs/{jobs['done'].id}?same=1"
            _shoot(browser, stage, url, pages, folder)
            binned = jobs["binned"].id
            pages = {"bin": "/jobs?state=bin", "binned": f"/jobs/{binned}"}
            pages["undo"] = f"/jobs?binned={binned}"
            _shoot(browser, stage, url, pages, folder)
            stage.queue.pause_step(Step.CONVERT, utcnow())
            held_up = {"paused-jobs": "/jobs", "paused-job": f"/jobs/{jobs['next'].id}"}
            _shoot(browser, stage, url, held_up, folder)
            stage.queue.resume_step(Step.CONVERT)
            stage.stop_worker()
            stuck = {"stuck-jobs": "/jobs", "stuck-job": f"/jobs/{jobs['next'].id}"}
            _shoot(browser, stage, url, stuck, folder)
            page = _context(browser, url, "", locale="en-US").new_page()
            page.goto(f"{url}/login")
            page.screenshot(path=folder / "login-desk-en-light.png")
        browser.close()


def photograph_for_readme(path: Path) -> None:
    """One real job, recognized by the real worker."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        data_dir = Path(scratch) / "data"
        with serving(data_dir) as (stage, url):
            job = stage.hand_in("Sense and Sensibility.flac", (DATA / "english.flac").read_bytes())
            _work(stage, job.id, data_dir)
            browser = playwright.chromium.launch(executable_path=CHROMIUM)
            context = _context(browser, url, stage.session(), locale="en-GB")
            page = context.new_page()
            page.set_viewport_size({"width": 1120, "height": 740})
            page.goto(f"{url}/jobs/{job.id}")
            page.get_by_text("He was not an ill-disposed").click()
            page.wait_for_selector("[aria-current=true]:text('He was not')")
            page.evaluate("document.getElementById('sound').pause()")
            page.mouse.move(0, 0)
            page.screenshot(path=path)
            browser.close()


def _work(stage: Stage, job_id: str, data_dir: Path) -> None:
    environment = dict(os.environ) | {
        "PISAR_STORAGE__DATA_DIR": str(data_dir),
        "PISAR_WORKER__METRICS_PORT": "0",
    }
    load(environment)
    worker = subprocess.Popen([sys.executable, "-m", "worker"], env=environment)
    deadline = time.monotonic() + 300
    try:
        while stage.queue.get(job_id).state is not State.DONE:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the job is still {stage.queue.get(job_id).state}")
            time.sleep(0.2)
    finally:
        worker.terminate()
        worker.wait()


def _shoot(browser: Browser, stage: Stage, url: str, pages: dict[str, str], folder: Path) -> None:
    secret = stage.session()
    for language in ("en", "ru"):
        for theme in ("light", "dark"):
            for place, size in (("desk", DESK), ("phone", PHONE)):
                locale = {"en": "en-GB", "ru": "ru-RU"}[language]
                context = _context(
                    browser,
                    url,
                    secret,
                    locale=locale,
                    color_scheme=theme,
                    viewport=size,
                    has_touch=place == "phone",
                )
                page = context.new_page()
                for name, path in pages.items():
                    page.goto(url + path)
                    shot = folder / f"{name}-{place}-{language}-{theme}.png"
                    page.screenshot(path=shot, full_page=place == "phone")
                context.close()


def _context(browser: Browser, url: str, secret: str, **options: object) -> BrowserContext:
    context = browser.new_context(timezone_id="Europe/Moscow", **options)  # type: ignore[arg-type]
    if secret:
        context.add_cookies([{"name": "pisar", "value": secret, "url": url}])
    return context


if __name__ == "__main__":
    if sys.argv[1] == "--readme":
        photograph_for_readme(Path(sys.argv[2]))
    else:
        photograph(Path(sys.argv[1]))
