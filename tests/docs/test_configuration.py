"""docs/configuration.md against the settings themselves."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from app.settings import Settings, load
from tests.docs.tables import DOCS, rows

DOCUMENTED = {cells[0].strip("`"): cells[1:] for cells in rows("configuration.md", "key")}


def defaults() -> dict[str, Any]:
    return {
        f"{section}.{key}": value
        for section in Settings.model_fields
        for key, value in dict[str, Any](part(Settings(), section)).items()
    }


def part(settings: Settings, section: str) -> BaseModel:
    found = getattr(settings, section)
    assert isinstance(found, BaseModel)
    return found


def as_toml(value: Any) -> str:
    if value is None:
        return "not set"
    return f"`{json.dumps(str(value) if isinstance(value, Path) else value)}`"


def test_every_setting_is_documented_once_and_no_other() -> None:
    keys = Counter(cells[0].strip("`") for cells in rows("configuration.md", "key"))
    assert keys == Counter(list(defaults()))


@pytest.mark.parametrize("key", defaults())
def test_the_default_is_the_real_one_and_there_is_a_meaning(key: str) -> None:
    default, meaning = DOCUMENTED[key]
    assert default == as_toml(defaults()[key])
    assert len(meaning.split()) >= 4
    assert meaning.endswith((".", "…"))


def test_each_setting_stands_under_its_section() -> None:
    section = ""
    for line in (DOCS / "configuration.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        if found := re.match(r"\| `(\w+)\.", line):
            assert found[1] == section


def test_the_example_is_valid(tmp_path: Path) -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    (tmp_path / "pisar.toml").write_text(example, encoding="utf-8")
    settings = load({"PISAR_CONFIG": str(tmp_path / "pisar.toml")})
    assert settings.server.public_url == "https://pisar.example"
