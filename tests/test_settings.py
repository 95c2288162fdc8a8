from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr, ValidationError

from app.settings import MAX_RECORDING_BYTES, Settings, SettingsError, load

SECRET = "hunter2-hunter2"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens here


class Vault(BaseModel):
    key: SecretStr = SecretStr("")


class WithSecret(Settings):
    """The settings with a secret among them."""

    vault: Vault = Vault()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pisar.toml of the folder one stands in may play a part."""
    monkeypatch.chdir(tmp_path)


def config(folder: Path, text: str) -> dict[str, str]:
    path = folder / "some.toml"
    path.write_text(text, encoding="utf-8")
    return {"PISAR_CONFIG": str(path)}


def test_i04_the_defaults_work_without_a_file() -> None:
    settings = load({})
    assert settings.storage.data_dir == Path("data")
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8080)
    assert settings.intake.max_size == MAX_RECORDING_BYTES == 8 * 1024**3
    assert settings == Settings()


def test_the_numbers_of_the_pipeline_are_the_defaults() -> None:
    settings = load({})
    assert settings.worker.max_attempts == 5
    assert settings.worker.retry_cap == 300
    assert settings.worker.convert_lease == settings.worker.recognize_lease == 8 * 3600
    assert settings.worker.check_lease == 3600
    assert settings.recognizer.first_check_delay == 10
    assert settings.recognizer.check_delay == 5
    assert settings.worker.poll_interval == 1
    assert settings.server.shutdown_timeout == 5
    assert settings.server.force_shutdown_timeout == 20
    assert settings.panel.invite_lifetime == 30 * 60
    assert settings.intake.max_duration == 6 * 3600


def test_i04_a_file_in_the_current_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "pisar.toml").write_text("[server]\nport = 9999\n")
    assert load({}).server.port == 9999


def test_i04_the_file_that_the_environment_names_is_read(tmp_path: Path) -> None:
    env = config(tmp_path, '[server]\nport = 9999\n[intake]\nmax_size = "2GiB"\n')
    assert load(env).server.port == 9999
    assert load(env).intake.max_size == 2 * 1024**3


def test_i04_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    env = config(tmp_path, '[server]\nport = 9999\nhost = "10.0.0.5"\n')
    settings = load({**env, "PISAR_SERVER__PORT": "7777", "PISAR_STORAGE__DATA_DIR": "/srv/p"})
    assert (settings.server.port, settings.server.host) == (7777, "10.0.0.5")
    assert settings.storage.data_dir == Path("/srv/p")


def test_i04_all_faults_come_in_one_message(tmp_path: Path) -> None:
    env = config(
        tmp_path,
        f'[server]\nport = 99999\nprot = 1\n[worker]\nmax_attempts = "many"\n[sever]\nhost = "x"\n'
        f'[log]\nlevel = "{SECRET}"\n',
    )
    with pytest.raises(SettingsError) as raised:
        load({**env, "PISAR_RECOGNIZER__PIECE_SECONDS": "1"})
    lines = str(raised.value).splitlines()
    assert lines[0] == "The settings are wrong:"
    assert sorted(line.split(":")[0].strip() for line in lines[1:]) == [
        "log.level",
        "recognizer.piece_seconds",
        "server.port",
        "server.prot",
        "sever",
        "worker.max_attempts",
    ]


def test_i04_a_fault_names_key_kind_and_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        load({"PISAR_SERVER__PORT": "eighty"})
    (line,) = str(raised.value).splitlines()[1:]
    assert line.strip().startswith("server.port: expected a valid integer")
    assert line.endswith("got text")


def test_i04_no_value_is_ever_shown(tmp_path: Path) -> None:
    env = config(tmp_path, f'[storage]\ntoken = "{SECRET}"\n[intake]\nauth = "{SECRET}"\n')
    with pytest.raises(SettingsError) as raised:
        load({**env, "PISAR_SERVER__PUBLIC_URL": SECRET, "PISAR_TELEGRAM__TOKEN": SECRET})
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "words"),
    [("[server", "not valid TOML"), ("\xff", "not valid TOML")],
)
def test_a_file_that_is_no_toml_is_named_as_such(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "some.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError, match=words):
        load({"PISAR_CONFIG": str(path)})


def test_a_named_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="is not there"):
        load({"PISAR_CONFIG": str(tmp_path / "nowhere.toml")})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        load({}).server.port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("host", "auth", "is_open"),
    [
        ("127.0.0.1", "auto", True),
        ("::1", "auto", True),
        (EVERYWHERE, "auto", False),
        ("192.168.1.5", "auto", False),
        ("127.0.0.1", "token", False),
        (EVERYWHERE, "open", True),
    ],
)
def test_i07_intake_is_open_on_loopback_only_unless_told(
    host: str, auth: str, is_open: bool
) -> None:
    settings = load({"PISAR_SERVER__HOST": host, "PISAR_INTAKE__AUTH": auth})
    assert settings.intake_is_open is is_open


def test_s13_no_setting_takes_more_than_the_largest_recording() -> None:
    with pytest.raises(SettingsError, match=r"intake\.max_size"):
        load({"PISAR_INTAKE__MAX_SIZE": "9GiB"})


@pytest.fixture
def with_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.settings.Settings", WithSecret)


@pytest.mark.usefixtures("with_secret")
def test_i04_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{SECRET}\n")
    settings = load({"PISAR_VAULT__KEY_FILE": str(tmp_path / "key")})
    assert isinstance(settings, WithSecret)
    assert settings.vault.key.get_secret_value() == SECRET
    assert SECRET not in repr(settings)


@pytest.mark.usefixtures("with_secret")
def test_i04_a_secret_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"vault\.key: the file that PISAR_VAULT__KEY_FILE"):
        load({"PISAR_VAULT__KEY_FILE": str(tmp_path / "nowhere")})


def test_i04_what_is_no_secret_comes_from_no_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"server\.host_file: there is no such setting"):
        load({"PISAR_SERVER__HOST_FILE": str(tmp_path / "x")})


BOT_TOKEN = "123456:canary-canary-canary-canary-canary"


def test_without_a_token_there_is_no_bot() -> None:
    assert load({}).telegram.token is None
    assert load({"PISAR_TELEGRAM__TOKEN": ""}).telegram.token is None


def test_p29_a_token_that_is_none_is_refused_without_being_shown() -> None:
    for wrong in (f"{BOT_TOKEN}/../x", f"{BOT_TOKEN} ", "canary", f"x{BOT_TOKEN}"):
        with pytest.raises(SettingsError) as found:
            load({"PISAR_TELEGRAM__TOKEN": wrong})
        assert "telegram.token: expected a bot's token" in str(found.value)
        assert "canary" not in str(found.value)
    kept = load({"PISAR_TELEGRAM__TOKEN": BOT_TOKEN})
    assert "canary" not in repr(kept)


def test_p29_a_malformed_api_address_does_not_show_the_token() -> None:
    for wrong in ("telegram", "ftp://x", "http://u:p@x", "http:// x", "http://x?y=1"):
        with pytest.raises(SettingsError) as found:
            load({"PISAR_TELEGRAM__TOKEN": BOT_TOKEN, "PISAR_TELEGRAM__API_URL": wrong})
        assert "telegram.api_url" in str(found.value)
        assert "canary" not in str(found.value)


def test_the_chats_of_a_variable_stand_between_commas() -> None:
    def allowed(text: str) -> object:
        return load({"PISAR_TELEGRAM__ALLOW": text}).telegram.allow

    assert allowed("5, -100200,") == (5, -100200)
    assert allowed(" everybody ") == "everybody"
    assert allowed("") == ()
    with pytest.raises(SettingsError, match="expected numbers of users"):
        allowed("5,me")


def test_a_webhook_needs_its_address() -> None:
    with pytest.raises(SettingsError, match="webhook_url too"):
        load({"PISAR_TELEGRAM__MODE": "webhook"})
