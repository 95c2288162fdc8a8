from hypothesis import given
from hypothesis import strategies as st

from app.job import Segment
from worker.recognizers.sentences import Word, in_order, readable, sentences


def spoken(text: str, seconds_per_word: float = 0.5) -> list[Word]:
    words = [f" {word}" for word in text.split()]
    return [
        Word(i * seconds_per_word, (i + 1) * seconds_per_word, word) for i, word in enumerate(words)
    ]


def texts(words: list[Word]) -> list[str]:
    return [segment.text for segment in sentences(words)]


def test_a_sentence_ends_at_its_mark() -> None:
    assert texts(spoken("Он ушёл. Куда? Домой! Она сказала: «Жди.» Все ждут")) == [
        "Он ушёл.", "Куда?", "Домой!", "Она сказала: «Жди.»", "Все ждут",
    ]  # fmt: skip


def test_titles_initials_and_numbers_do_not_end_a_sentence() -> None:
    assert texts(spoken("Mr. Dashwood and J. Austen left. So do I. Bye.")) == [
        "Mr. Dashwood and J. Austen left.", "So do I.", "Bye.",
    ]  # fmt: skip
    assert texts([Word(0, 1, " 3."), Word(1, 2, "5"), Word(2, 3, " metres.")]) == ["3.5 metres."]


def test_a_script_without_spaces_is_cut_at_its_own_marks() -> None:
    assert texts([Word(0, 1, "你好。"), Word(1, 2, "再见。")]) == ["你好。", "再见。"]


def test_a_long_sentence_is_cut_at_a_comma_and_an_endless_one_anywhere() -> None:
    *cut, _ = sentences(spoken("word, " * 60))
    assert {s.end - s.start for s in cut} == {12.5}
    endless = spoken("word " * 100)
    assert max(s.end - s.start for s in sentences(endless)) <= 24.5


def test_a_long_pause_ends_a_sentence() -> None:
    assert texts([Word(0, 1, " well"), Word(4, 5, " yes")]) == ["well", "yes"]


@given(
    st.lists(st.tuples(st.floats(-5, 700), st.floats(-5, 700), st.text("ab", max_size=3))),
    st.floats(0, 300),
    st.floats(0.02, 300),
)
def test_times_rise_within_the_piece_and_no_text_is_lost(
    raw: list[tuple[float, float, str]], start: float, length: float
) -> None:
    segments = [Segment(begins, ends, text) for begins, ends, text in raw]
    placed = in_order(segments, start=start, end=start + length)
    here = round(start, 3)
    for segment in placed:
        assert here <= segment.start < segment.end <= start + length
        assert round(segment.start, 3) == segment.start
        assert round(segment.end, 3) == segment.end
        here = segment.end
    said = "".join(text for _, _, text in raw)
    assert "".join(s.text for s in placed).replace(" ", "") == said


def test_a_pause_or_much_text_begins_a_paragraph() -> None:
    assert readable([Segment(0, 1, "A."), Segment(1.5, 2, "B."), Segment(5.5, 6, "C.")]) == (
        "A. B.\n\nC."
    )
    long = [Segment(i, i + 1, "word " * 20 + "end.") for i in range(20)]
    assert all(len(part) < 800 for part in readable(long).split("\n\n"))
    unfinished = [Segment(i, i + 1, "word " * 20) for i in range(20)]
    assert "\n\n" not in readable(unfinished)


def test_no_speech_is_an_empty_text() -> None:
    assert list(sentences([])) == []
    assert readable([]) == ""
