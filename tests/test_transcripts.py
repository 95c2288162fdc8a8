"""The forms a transcript is taken away in: whatever the engine gave, each file opens (CE01)."""

import json
import re
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.job import Segment, Transcript
from app.transcripts import LINE_LENGTH, MEDIA_TYPES, paragraphs, render

_TIMES = re.compile(r"(\d\d+):(\d\d):(\d\d)[,.](\d{3}) --> (\d\d+):(\d\d):(\d\d)[,.](\d{3})")

HOSTILE = Transcript(
    "whatever",
    (
        Segment(5, 3, "It ends --> before it starts"),
        Segment(4, 4, "1\n\n\n2\n00:00:01,000 --> 00:00:02,000"),
        Segment(float("nan"), float("inf"), "no time at all"),
        Segment(-7, -2, "<b>before</b> & the \x00\x1b beginning\u2028"),
        Segment(40_000, 40_002.5, "eleven hours in"),
        Segment(50_000, 50_000, "\n\t \x00"),
    ),
)

seconds = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 90_000)
segments = st.builds(
    Segment,
    start=seconds,
    end=seconds,
    text=st.text(max_size=400) | st.sampled_from(["-->", "1\n", "\r\n\r\n", "WEBVTT", "\ufeff"]),
    speaker=st.none() | st.text(max_size=5),
)
transcripts = st.builds(Transcript, text=st.text(), segments=st.lists(segments).map(tuple))


def parse(text: str, mark: str) -> list[tuple[int, int, list[str]]]:
    """Read subtitles as strictly as a player may: one blank line between cues, no other."""
    found = []
    for number, block in enumerate(text.rstrip("\n").split("\n\n") if text else [], 1):
        lines = block.split("\n")
        if mark == ",":
            assert lines.pop(0) == str(number)
        match = _TIMES.fullmatch(lines.pop(0))
        assert match
        assert mark in match.group(0)
        parts = [int(part) for part in match.groups()]
        assert all(parts[at] < 60 for at in (1, 2, 5, 6))
        start, end = (
            ((parts[at] * 60 + parts[at + 1]) * 60 + parts[at + 2]) * 1000 + parts[at + 3]
            for at in (0, 4)
        )
        assert 1 <= len(lines) <= 2
        for line in lines:
            assert line.strip()
            assert "-->" not in line
        found.append((start, end, lines))
    return found


def vtt_cues(text: str) -> list[tuple[int, int, list[str]]]:
    head, _, rest = text.partition("\n")
    assert head == "WEBVTT"
    return parse(rest.removeprefix("\n"), ".")


def assert_in_order(cues: list[tuple[int, int, list[str]]]) -> None:
    last = 0
    for start, end, _ in cues:
        assert start >= last
        assert end - start >= 100
        last = end


def test_ce01_hostile_times_and_texts_give_strict_subtitles() -> None:
    srt = parse(render(HOSTILE, "srt"), ",")
    vtt = vtt_cues(render(HOSTILE, "vtt"))
    assert_in_order(srt)
    assert [cue[:2] for cue in srt] == [cue[:2] for cue in vtt]
    assert srt[-1][0] == 40_000_000
    assert srt[0][2] == ["It ends -> before it starts"]
    assert "&lt;b&gt;before&lt;/b&gt; &amp; the" in render(HOSTILE, "vtt")


@given(transcripts)
def test_ce01_any_transcript_gives_strict_subtitles(transcript: Transcript) -> None:
    srt = parse(render(transcript, "srt"), ",")
    assert_in_order(srt)
    assert len(vtt_cues(render(transcript, "vtt"))) == len(srt)
    for _, _, lines in srt:
        assert all(len(line) <= LINE_LENGTH for line in lines)


@given(transcripts)
def test_any_transcript_gives_json_and_text_that_can_be_written(transcript: Transcript) -> None:
    whole = json.loads(render(transcript, "json", language="ru", duration_seconds=1.5))
    assert set(whole) == {"text", "segments", "language", "duration"}
    assert all(part["end"] >= part["start"] >= 0 for part in whole["segments"])
    for form in MEDIA_TYPES:
        assert "\x00" not in render(transcript, form).encode().decode()


@given(transcripts)
def test_paragraphs_hold_every_segment_that_has_text(transcript: Transcript) -> None:
    held = [part for paragraph in paragraphs(transcript) for part in paragraph.segments]
    whole = json.loads(render(transcript, "json"))
    assert [part.text for part in held] == [part["text"] for part in whole["segments"]]


def test_times_of_a_usual_recording_are_kept_as_they_are() -> None:
    usual = Transcript("", (Segment(0.5, 2.25, "Hello."), Segment(2.25, 3, "Bye.")))
    assert [cue[:2] for cue in parse(render(usual, "srt"), ",")] == [(500, 2250), (2250, 3000)]


def test_an_overlong_segment_becomes_cues_that_share_its_time() -> None:
    long = Transcript("", (Segment(10, 40, "a word and another one " * 20),))
    cues = parse(render(long, "srt"), ",")
    assert len(cues) > 5
    assert (cues[0][0], cues[-1][1]) == (10_000, 40_000)
    assert_in_order(cues)


@pytest.mark.parametrize(("form", "expected"), [("txt", ""), ("srt", ""), ("vtt", "WEBVTT\n")])
def test_cm02_no_speech_gives_files_that_are_empty_but_open(form: str, expected: str) -> None:
    assert render(Transcript("", ()), form) == expected


def test_cm02_no_speech_gives_json_without_segments() -> None:
    whole = json.loads(render(Transcript("", ()), "json"))
    assert whole == {"text": "", "segments": [], "language": None, "duration": None}


@pytest.mark.parametrize("form", ["srt", "vtt"])
def test_ce01_a_real_demuxer_reads_the_hostile_one(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"hostile.{form}"
    path.write_text(render(HOSTILE, form), encoding="utf-8")
    with av.open(str(path)) as container:
        starts = [packet.pts for packet in container.demux() if packet.pts is not None]
    assert starts == [cue[0] for cue in parse(render(HOSTILE, "srt"), ",")]


def test_a_pause_or_another_speaker_begins_a_paragraph() -> None:
    said = (
        Segment(0, 2, "One.", "A"),
        Segment(2, 3, "Two.", "A"),
        Segment(3, 4, "Three.", "B"),
        Segment(9, 10, "Four.", "B"),
    )
    found = paragraphs(Transcript("", said))
    assert [(part.start, part.speaker, part.text) for part in found] == [
        (0, "A", "One. Two."),
        (3, "B", "Three."),
        (9, "B", "Four."),
    ]
    assert render(Transcript("", said), "txt") == "One. Two.\n\nThree.\n\nFour.\n"
