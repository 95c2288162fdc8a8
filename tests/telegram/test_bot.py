"""The bot's process: its start and its end."""

from pathlib import Path

import pytest

from app.cli.service import commands
from app.settings import Settings, load
from app.telegram import bot
from app.telegram.api import BotApi, build
from tests.telegram.line import TOKEN


def settings(data_dir: Path, **more: str) -> Settings:
    environ = {
        "PISAR_STORAGE__DATA_DIR": str(data_dir),
        "PISAR_TELEGRAM__TOKEN": TOKEN,
        "PISAR_TELEGRAM__API_URL": "http://127.0.0.1:9",
        "PISAR_TELEGRAM__METRICS_PORT": "0",
    }
    return load(environ | {f"PISAR_TELEGRAM__{key}": value for key, value in more.items()})


def test_p26_the_client_is_built_once_and_handed_to_receiver_and_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[BotApi] = []
    held: list[object] = []

    def counted(given: Settings) -> BotApi:
        built.append(build(given))
        return built[-1]

    def run(self: bot.Bot) -> int:
        held.extend([self._api, self._receiver._api, self._voice._api])
        return 0

    monkeypatch.setattr(bot, "build", counted)
    monkeypatch.setattr(bot.Bot, "run", run)
    assert bot.serve(settings(tmp_path)) == 0
    assert len(built) == 1
    assert held == built * 3


def test_without_a_token_there_is_no_bot(tmp_path: Path) -> None:
    assert bot.serve(settings(tmp_path, TOKEN="")) == 78
    assert not list(tmp_path.iterdir())


def test_pisar_up_starts_a_bot_when_there_is_a_token(tmp_path: Path) -> None:
    assert list(commands(settings(tmp_path))) == ["web", "worker", "bot"]
    assert list(commands(settings(tmp_path, TOKEN=""))) == ["web", "worker"]
