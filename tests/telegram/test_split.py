"""Long texts as messages: nothing lost, nothing empty, cut where people pause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.telegram.split import beginning, clean, length, split

LIMIT = 4000
SENTENCE = "Сегодня мы говорим о погоде 🌦, и о том, что будет завтра. "


def test_ct02_thirty_thousand_letters_arrive_whole_and_in_order() -> None:
    text = clean(SENTENCE * 500)
    parts = split(text, LIMIT)
    assert "".join(parts) == text
    assert all(0 < length(part) <= LIMIT for part in parts)
    assert len(parts) <= length(text) / LIMIT * 1.1 + 1


def test_a_part_ends_with_a_sentence() -> None:
    parts = split(clean(SENTENCE * 500), LIMIT)
    assert all(part.rstrip().endswith("завтра.") for part in parts)


def test_a_part_ends_with_a_paragraph_when_that_is_not_far() -> None:
    text = "one sentence. " * 150 + "last of it.\n\n" + "two sentences. " * 200
    assert split(clean(text), 4000)[0].endswith("last of it.\n\n")


def test_a_sentence_without_an_end_is_cut_between_words() -> None:
    parts = split("слово " * 3000, LIMIT)
    assert all(part.endswith(" ") for part in parts[:-1])


def test_telegram_counts_what_lies_beyond_the_first_plane_twice() -> None:
    assert length("a🌦") == 3
    assert [length(part) for part in split("🌦" * 10, 5)] == [4, 4, 4, 4, 4]


def test_an_accent_stays_with_its_letter() -> None:
    text = "e\u0301" * 100
    assert all(not part.startswith("\u0301") for part in split(text, 33))


def test_half_a_character_becomes_a_sign_that_can_be_sent() -> None:
    assert clean("a\ud83dб\0 ") == "a\ufffdб"


def test_the_beginning_of_a_long_text_is_its_first_sentences() -> None:
    first = beginning(clean(SENTENCE * 100), 900)
    assert first.endswith("завтра. …")
    assert length(first) <= 900
    assert beginning("short", 900) == "short"


@given(
    st.text(alphabet=st.sampled_from("ab. \n!é\u0301🌦\u200d—"), min_size=1, max_size=700),
    st.integers(100, 300),
)
def test_any_text_arrives_whole(raw: str, limit: int) -> None:
    text = clean(raw)
    parts = split(text, limit)
    assert "".join(parts) == text
    for part in parts:
        assert length(part) <= limit
        assert part.strip()


@pytest.mark.parametrize("marks", ["_*[]()~`>#+-=|{}.!", "<b>&amp;</b>", "\\n"])
def test_ct04_marks_are_signs_like_any_other(marks: str) -> None:
    assert split(clean(marks), 100) == [marks]
