"""docs/operations.md against the metrics, the exit codes and the commands themselves."""

import re

import click
import pytest
from prometheus_client.metrics import MetricWrapperBase

from app import metrics, process
from app.web import health
from tests.cli.test_words import every_command
from tests.docs.tables import DOCS, rows

PAGES = ("operations.md", "configuration.md", "architecture.md", "../README.md")


def shown() -> dict[str, set[str]]:
    """Our metrics by the name that is scraped, each with its labels."""
    found = {}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            name = metric.describe()[0].name
            found[name + ("_total" if metric._type == "counter" else "")] = set(metric._labelnames)
    for gauge in metrics._queue_gauges():
        found[gauge.name] = set(gauge._labelnames)
    return found


def test_every_metric_is_documented_with_its_labels() -> None:
    told = {
        cells[0].strip("`"): set(re.findall(r"`(\w+)`", cells[1]))
        for cells in rows("operations.md", "metric")
    }
    assert told == shown()


def test_every_exit_code_is_documented() -> None:
    codes = {value for name, value in vars(process).items() if name.startswith("EXIT_")}
    codes |= {0, click.UsageError.exit_code}
    assert {int(cells[0]) for cells in rows("operations.md", "exit code")} == codes


def test_every_reason_of_readyz_is_documented() -> None:
    text = (DOCS / "operations.md").read_text(encoding="utf-8")
    assert [reason for reason in health._CHECKS if f"`{reason}`" not in text] == []


@pytest.mark.parametrize("name", PAGES)
def test_no_page_names_a_command_that_there_is_not(name: str) -> None:
    known = {" ".join(words) for words in every_command()}
    text = (DOCS / name).read_text(encoding="utf-8")
    for words in re.findall(r"`(?:\.venv/bin/)?pisar ([a-z-]+(?: [a-z-]+)?)", text):
        assert words in known or words.split()[0] in known, f"{name}: pisar {words}"


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    path = DOCS / name
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{name}: {target}"


def test_every_command_is_named_in_the_pages() -> None:
    text = "".join((DOCS / page).read_text(encoding="utf-8") for page in (*PAGES, "api.md"))
    groups = {words[0] for words in every_command() if words}
    assert [name for name in sorted(groups) if f"pisar {name}" not in text] == []
