"""The catalogue: every sentence is in it, in Russian too, and no template speaks past it."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from app.errors import KINDS
from app.i18n import LANGUAGES, best_language, catalogue, error_sentence
from app.resources import ROOT, TEMPLATES, TRANSLATIONS

METHODS = [("**.py", "python"), ("**.html", "jinja2")]
TRANSLATED = [code for code in LANGUAGES if code != "en"]
# Words that are the same in every language.
NAMES = {"Pisar", "·", ":", "–", "…", ",", "(", ")", "API", "Telegram"}
SPOKEN_ATTRIBUTES = {"aria-label", "title", "alt", "placeholder"}
_JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_PLACES = re.compile(r"%\((\w+)\)[sd]")


def sentences() -> set[tuple[str, ...]]:
    """Every message id of the product's code and templates."""
    found = set()
    for folder in ("app", "worker", "templates"):
        options = {"**.html": {"trimmed": "true"}}
        for _, _, message, _, _ in extract_from_dir(ROOT / folder, METHODS, options):
            found.add(message if isinstance(message, tuple) else (message,))
    return found


def translations(language: str) -> Catalog:
    with (TRANSLATIONS / language / "LC_MESSAGES" / "messages.po").open("rb") as file:
        return read_po(file, locale=language)


def ids(message: Message) -> tuple[str, ...]:
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


@pytest.mark.parametrize("language", TRANSLATED)
def test_the_catalogue_holds_what_the_product_says_and_no_more(language: str) -> None:
    held = {ids(message) for message in translations(language) if message.id}
    assert held == sentences(), (
        "run: pybabel extract -F pyproject.toml -o messages.pot --no-location app worker templates"
        f" && pybabel update -i messages.pot -d translations -l {language} --no-fuzzy-matching"
    )


@pytest.mark.parametrize("language", TRANSLATED)
def test_every_sentence_is_translated_with_its_places(language: str) -> None:
    forms = translations(language).num_plurals
    for message in translations(language):
        if not message.id:
            continue
        said = (message.string,) if isinstance(message.string, str) else tuple(message.string)
        assert len(said) == (1 if len(ids(message)) == 1 else forms), message.id
        assert all(said), message.id
        assert not message.fuzzy, message.id
        for text in said:
            assert set(_PLACES.findall(text)) == set(_PLACES.findall(ids(message)[-1])), message.id


def test_russian_plurals_follow_the_number() -> None:
    russian = catalogue("ru")
    forms = [
        russian.ungettext("about %(num)d minute left", "about %(num)d minutes left", number)
        for number in (1, 3, 5, 21)
    ]
    assert [form.split()[-1] for form in forms] == ["минута", "минуты", "минут", "минута"]


def test_every_error_has_a_russian_sentence() -> None:
    for code, kind in KINDS.items():
        assert error_sentence(code, "en") == kind.sentence
        assert error_sentence(code, "ru") != kind.sentence


def test_the_first_language_there_is_wins() -> None:
    assert best_language(["de-DE", "ru-RU", "en"]) == "ru"
    assert best_language(["xx", ""]) == "en"


class Bare(HTMLParser):
    """Collects the words that a template says without asking the catalogue."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.words += [value or "" for name, value in attrs if name in SPOKEN_ATTRIBUTES]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def found(self) -> list[str]:
        words = {word.strip() for text in self.words for word in text.split()}
        return sorted(word for word in words - NAMES if re.search(r"[^\W\d_]", word))


def templates() -> Iterator[Path]:
    return TEMPLATES.rglob("*")


@pytest.mark.parametrize(
    "path",
    [path for path in templates() if path.is_file()],
    ids=lambda path: str(path.relative_to(TEMPLATES)),
)
def test_a_template_says_nothing_past_the_catalogue(path: Path) -> None:
    assert path.suffix == ".html", "another ending would not be escaped"
    text = path.read_text(encoding="utf-8")
    assert "|safe" not in text.replace(" ", "")
    bare = Bare()
    bare.feed(_JINJA.sub("", text))
    assert bare.found() == []
