"""I03: help everywhere, one-line errors, exit codes."""

from collections.abc import Iterator

import click
import pytest

from app.cli.root import pisar, run
from tests.cli.console import Console

COMMANDS = {
    "up", "web", "worker", "transcribe", "jobs", "show", "revive", "cancel", "delete", "undelete",
    "pause", "resume", "owner", "token", "check",
}  # fmt: skip


def every_command(
    command: click.Command = pisar, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from every_command(child, (*words, name))


def test_the_commands_are_those_that_scripts_rely_on() -> None:
    names = {" ".join(words) for words in every_command()}
    assert names > COMMANDS
    assert {"owner invite", "owner reset-password", "owner sign-out-all"} < names
    assert {"token create", "token list", "token revoke"} < names


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_i03_each_command_has_help(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Usage: pisar")
    text = shown.split("\n\n")[1]
    assert text.strip().endswith("."), "the first words of the help are a sentence"
    assert "..." not in shown.partition("Commands:")[2], "a short help is cut off"


def test_i03_help_needs_no_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PISAR_SERVER__PORT", "none")
    assert run(["jobs", "--help"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("jobs", "--state", "asleep"),
        ("show",),
        ("revive",),
        ("revive", "abc", "--state", "dead"),
        ("cancel",),
        ("delete",),
        ("undelete",),
        ("pause",),
        ("pause", "sleeping"),
        ("resume", "transcribe"),
        ("jobs", "--state", "bin", "--state", "dead"),
        ("transcribe",),
        ("transcribe", "nowhere.mp3"),
        ("transcribe", "--format", "pdf", __file__),
        ("token", "create", "x"),
        ("token", "create", "x", "--scope", "everything"),
        ("token", "create", "x", "--scope", ""),
    ],
    ids=" ".join,
)
def test_i03_wrong_usage_is_one_line_and_exit_code_2(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("pisar: ")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [("jobs",), ("up",), ("web",), ("worker",), ("check",)], ids=" ".join
)
def test_i03_bad_settings_are_exit_code_78(console: Console, words: tuple[str, ...]) -> None:
    answer = console.run(*words, environ={"PISAR_SERVER__PORT": "none", "PISAR_WORKER__X": "1"})
    assert answer.code == 78
    assert "server.port: expected" in answer.err
    assert "worker.x: there is no such setting" in answer.err
    assert "Traceback" not in answer.err


def test_a_database_of_a_newer_version_is_one_line_and_78(console: Console) -> None:
    assert console.run("jobs").code == 0
    console.make_newer()
    answer = console.run("jobs")
    assert answer.code == 78
    assert answer.err.startswith("pisar: The database was written by a newer version of Pisar.")
    assert answer.err.count("\n") == 1


def test_a_reader_that_has_seen_enough_is_no_failure_to_talk_about(console: Console) -> None:
    answer = console.run_through_head("--help")
    assert answer.err == ""
