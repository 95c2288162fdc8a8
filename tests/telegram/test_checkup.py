"""What `pisar check` tells of Telegram."""

from pathlib import Path

import pytest

from app.checkup import Finding, Verdict
from app.cli import check
from app.liveness import Presence
from app.settings import Settings, load
from app.telegram.checkup import examine
from tests.telegram.double import Telegram


def settings(data_dir: Path, telegram: Telegram, **more: str) -> Settings:
    environ = {
        "PISAR_STORAGE__DATA_DIR": str(data_dir),
        "PISAR_TELEGRAM__TOKEN": telegram.token,
        "PISAR_TELEGRAM__API_URL": telegram.api_url,
        "PISAR_TELEGRAM__REQUEST_TIMEOUT": "1",
    }
    return load(environ | {f"PISAR_{key}": value for key, value in more.items()})


def test_a_bot_that_is_well(tmp_path: Path, telegram: Telegram) -> None:
    telegram.network.sees_all = True
    presence = Presence(tmp_path, "bot")
    (finding,) = examine(settings(tmp_path, telegram, SERVER__PUBLIC_URL="https://pisar.example"))
    assert (finding.verdict, finding.words) == (Verdict.OK, "it knows the bot as @scribe_bot")
    presence.close()


def test_ct15_what_groups_and_large_files_need_is_told(tmp_path: Path, telegram: Telegram) -> None:
    found = list(examine(settings(tmp_path, telegram)))
    assert [finding.verdict for finding in found] == [Verdict.OK] + [Verdict.NOTE] * 3
    assert [finding.mend for finding in found if "privacy" in finding.mend]


def test_no_token_is_no_fault(tmp_path: Path, telegram: Telegram) -> None:
    (finding,) = examine(settings(tmp_path, telegram, TELEGRAM__TOKEN=""))
    assert finding.verdict is Verdict.OK
    assert not telegram.journal.calls()


@pytest.mark.parametrize("trouble", ["revoked", "silent", "down"])
def test_p27_what_is_broken_is_told_with_its_mend(
    tmp_path: Path, telegram: Telegram, trouble: str
) -> None:
    given = settings(tmp_path, telegram)
    telegram.is_revoked = trouble == "revoked"
    if trouble == "silent":
        telegram.faults.silence()
    if trouble == "down":
        telegram.goes_down()
    (finding,) = examine(given)
    assert finding.verdict is Verdict.BROKEN
    assert finding.mend
    assert telegram.token.split(":")[1] not in str(finding)
    if trouble == "down":
        telegram.comes_up()


def test_the_command_tells_it_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Finding("telegram", Verdict.BROKEN, "no answer", "look at the network")
    monkeypatch.setattr(check, "examine", lambda given: iter(()))
    monkeypatch.setattr(check, "examine_telegram", lambda given: iter((broken,)))
    monkeypatch.setattr(check, "load", Settings)
    assert check.check.main([], standalone_mode=False) == 1
    assert "mend: look at the network" in capsys.readouterr().out
