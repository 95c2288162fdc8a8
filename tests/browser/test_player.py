"""Which recordings a real browser plays and seeks in as they came, against what we claim."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from app.storage.kinds import HEAD_BYTES, sniff
from tests.media import recordings
from tests.media.test_kinds import PLAYABLE

PLAY = """async ([data, type]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const player = new Audio(URL.createObjectURL(new Blob([bytes], {type})));
  const happened = (name) => new Promise((yes, no) => {
    player.addEventListener(name, yes, {once: true});
    player.addEventListener("error", () => no(player.error.message), {once: true});
  });
  await happened("loadedmetadata");
  const duration = player.duration;
  player.currentTime = 3;
  await happened("seeked");
  const ended = happened("ended");
  player.playbackRate = 8;
  player.muted = true;
  const at = player.currentTime;
  await player.play();
  await ended;
  return {duration, at, end: player.currentTime};
}"""


@pytest.mark.parametrize("name", sorted(PLAYABLE))
def test_cm04_a_recording_called_playable_plays_and_seeks(
    name: str, browser: Browser, tmp_path: Path
) -> None:
    source = tmp_path / name
    recordings.SOUND[name](source)
    data = source.read_bytes()
    with browser.new_context() as context:
        page = context.new_page()
        played = page.evaluate(
            PLAY, [base64.b64encode(data).decode(), sniff(data[:HEAD_BYTES]).media_type]
        )
    assert played["duration"] == pytest.approx(recordings.SECONDS, abs=0.1)
    assert played["at"] == pytest.approx(3, abs=0.05)
    assert played["end"] == pytest.approx(recordings.SECONDS, abs=0.1)


def test_cm04_a_recording_without_a_duration_cannot_be_sought_in(
    browser: Browser, tmp_path: Path
) -> None:
    """The reason why the converted copy is played instead."""
    source = tmp_path / "live.webm"
    recordings.live_webm(source)
    with browser.new_context() as context:
        page = context.new_page()
        duration = page.evaluate(
            """(data) => new Promise((yes) => {
              const player = new Audio("data:video/webm;base64," + data);
              player.addEventListener("loadedmetadata", () => yes(String(player.duration)));
            })""",
            base64.b64encode(source.read_bytes()).decode(),
        )
    assert duration == "Infinity"
