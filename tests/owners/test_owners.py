"""Accounts: invitations, passwords, throttle, sessions, tokens."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import app.owners
from app.clock import later
from app.db import Database, statements
from app.errors import AppError
from app.migrate import open_database
from app.owners import ApiToken, Owners, Scope, TooManyTriesError
from app.owners.throttle import pause_seconds, subjects_of
from app.settings import Panel

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PASSWORD = "correct horse battery"
HERE = "192.0.2.7"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = open_database(tmp_path, NOW)
    yield database
    database.close()


@pytest.fixture
def owners(database: Database) -> Owners:
    return Owners(database, Panel())


@pytest.fixture
def scribe(owners: Owners) -> str:
    return owners.accept_invitation(owners.invite(NOW), "Scribe", PASSWORD, NOW).id


def guess(owners: Owners, at: datetime, name: str = "scribe", address: str = HERE) -> str:
    """Try a wrong password; gives the code of the refusal."""
    with pytest.raises(AppError) as caught:
        owners.verify(name, "wrong password!", address, at)
    return caught.value.code


def test_an_invitation_makes_the_owner_who_then_signs_in(owners: Owners) -> None:
    owners.accept_invitation(owners.invite(NOW), "Писарь", PASSWORD, NOW)
    assert owners.exists()
    assert owners.verify("писарь", PASSWORD, HERE, NOW).name == "Писарь"


def test_an_invitation_ends_after_its_lifetime(owners: Owners) -> None:
    token = owners.invite(NOW)
    assert owners.is_invited(token, later(NOW, 1799))
    with pytest.raises(AppError, match="This invitation is over"):
        owners.accept_invitation(token, "scribe", PASSWORD, later(NOW, 1801))
    assert not owners.exists()


def test_an_invitation_is_good_once(owners: Owners) -> None:
    token = owners.invite(NOW)
    owners.accept_invitation(token, "scribe", PASSWORD, NOW)
    with pytest.raises(AppError) as caught:
        owners.accept_invitation(token, "beta", PASSWORD, NOW)
    assert caught.value.code == "invitation_over"


def test_two_uses_of_an_invitation_at_once_give_one_owner(owners: Owners) -> None:
    token = owners.invite(NOW)

    def use(name: str) -> str:
        try:
            return owners.accept_invitation(token, name, PASSWORD, NOW).name
        except AppError as error:
            return error.code

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(use, ["scribe", "beta", "alpha", "delta"]))
    assert outcomes.count("invitation_over") == 3, outcomes


def test_a_fresh_invitation_ends_the_older_one(owners: Owners) -> None:
    older = owners.invite(NOW)
    assert owners.is_invited(owners.invite(NOW), NOW)
    assert not owners.is_invited(older, NOW)


def test_nobody_is_invited_once_there_is_an_owner(owners: Owners, scribe: str) -> None:
    with pytest.raises(AppError) as caught:
        owners.invite(NOW)
    assert caught.value.code == "owner_exists"


@pytest.mark.parametrize("password", ["", "elevenchars", "x" * 1025])
def test_a_weak_password_is_refused_and_the_invitation_stays(owners: Owners, password: str) -> None:
    token = owners.invite(NOW)
    with pytest.raises(AppError) as caught:
        owners.accept_invitation(token, "scribe", password, NOW)
    assert caught.value.code == "weak_password"
    assert owners.is_invited(token, NOW)


@pytest.mark.parametrize("name", ["", "   ", "a b", "x" * 65, "a\nb", "<b>"])
def test_a_bad_name_is_refused(owners: Owners, name: str) -> None:
    with pytest.raises(AppError) as caught:
        owners.accept_invitation(owners.invite(NOW), name, PASSWORD, NOW)
    assert caught.value.code == "bad_name"


def test_five_tries_are_free_and_the_sixth_waits(owners: Owners, scribe: str) -> None:
    assert [guess(owners, NOW) for _ in range(6)] == ["wrong_password"] * 5 + ["too_many_tries"]


def test_the_right_password_waits_too(owners: Owners, scribe: str) -> None:
    for _ in range(5):
        guess(owners, NOW)
    with pytest.raises(TooManyTriesError) as caught:
        owners.verify("scribe", PASSWORD, HERE, NOW)
    wait = caught.value.retry_after_seconds
    assert wait == 2
    assert owners.verify("scribe", PASSWORD, HERE, later(NOW, wait)).id == scribe


def test_the_pause_doubles_up_to_five_minutes() -> None:
    assert [pause_seconds(n) for n in range(3, 15)] == [
        *(0, 0, 2, 4, 8, 16, 32, 64, 128, 256),
        *(300, 300),
    ]
    assert pause_seconds(10**6) == 300


def test_the_throttle_survives_a_restart(tmp_path: Path) -> None:
    first = open_database(tmp_path, NOW)
    for _ in range(5):
        guess(Owners(first, Panel()), NOW)
    first.close()
    second = open_database(tmp_path, NOW)
    assert guess(Owners(second, Panel()), NOW) == "too_many_tries"
    second.close()


def test_an_address_is_slowed_down_whatever_name_it_tries(owners: Owners, scribe: str) -> None:
    for number in range(5):
        guess(owners, NOW, name=f"name{number}")
    assert guess(owners, NOW, name="scribe") == "too_many_tries"
    assert guess(owners, NOW, name="scribe", address="192.0.2.8") == "wrong_password"


def test_a_name_is_slowed_down_from_whatever_address(owners: Owners, scribe: str) -> None:
    for number in range(5):
        guess(owners, NOW, name=" SCRIBE", address=f"192.0.2.{number}")
    assert guess(owners, NOW, address="198.51.100.1") == "too_many_tries"


def test_an_ipv6_network_counts_as_one_address() -> None:
    one, other = subjects_of("a", "2001:db8::1"), subjects_of("a", "2001:db8::ffff:1")
    assert one == other
    assert subjects_of("a", "2001:db8:0:1::1") != one
    assert subjects_of("a", "::ffff:192.0.2.7") == subjects_of("a", "192.0.2.7")


def test_guesses_at_once_do_not_slip_past_the_throttle(owners: Owners, scribe: str) -> None:
    with ThreadPoolExecutor(12) as pool:
        codes = list(pool.map(lambda _: guess(owners, NOW), range(12)))
    assert codes.count("wrong_password") == 5, codes


def test_signing_in_clears_the_record(owners: Owners, scribe: str) -> None:
    for _ in range(4):
        guess(owners, NOW)
    owners.verify("scribe", PASSWORD, HERE, NOW)
    assert [guess(owners, NOW) for _ in range(5)] == ["wrong_password"] * 5


def test_a_clock_set_back_does_not_lock_the_owner_out(owners: Owners, scribe: str) -> None:
    for _ in range(5):
        guess(owners, NOW)
    assert owners.verify("scribe", PASSWORD, HERE, later(NOW, -3600)).id == scribe


def test_a_session_is_found_by_its_secret_until_it_ends(owners: Owners, scribe: str) -> None:
    secret = owners.sessions.start(scribe, "Firefox", NOW)
    found = owners.sessions.find(secret, NOW)
    assert found is not None and found.owner_name == "Scribe" and found.id != secret
    owners.sessions.end(scribe, found.id)
    assert owners.sessions.find(secret, NOW) is None


def test_an_idle_session_ends_and_a_used_one_does_not(owners: Owners, scribe: str) -> None:
    secret = owners.sessions.start(scribe, "Firefox", NOW)
    idle = Panel().session_idle
    found = owners.sessions.find(secret, later(NOW, idle - 1))
    assert found is not None
    owners.sessions.touch(found, later(NOW, idle - 1))
    assert owners.sessions.find(secret, later(NOW, idle + 1)) is not None
    assert owners.sessions.find(secret, later(NOW, 2 * idle)) is None


def test_a_session_ends_after_its_lifetime_however_busy(owners: Owners, scribe: str) -> None:
    secret = owners.sessions.start(scribe, "Firefox", NOW)
    at = NOW
    for _ in range(62):
        at = later(at, 12 * 3600 - 10)
        found = owners.sessions.find(secret, at)
        if found is None:
            break
        owners.sessions.touch(found, at)
    assert 30 * 86400 - 43200 < (at - NOW).total_seconds() <= 30 * 86400 + 43200


def test_a_new_password_ends_the_other_sessions(owners: Owners, scribe: str) -> None:
    kept, other = (owners.sessions.start(scribe, agent, NOW) for agent in ("a", "b"))
    mine = owners.sessions.find(kept, NOW)
    assert mine is not None
    owners.change_password(scribe, PASSWORD, "another long password", mine.id, HERE, NOW)
    assert owners.sessions.find(kept, NOW) is not None
    assert owners.sessions.find(other, NOW) is None
    assert owners.verify("scribe", "another long password", HERE, NOW).id == scribe


def test_changing_the_password_needs_the_present_one(owners: Owners, scribe: str) -> None:
    with pytest.raises(AppError) as caught:
        owners.change_password(scribe, "wrong", "another long password", "", HERE, NOW)
    assert caught.value.code == "wrong_password"


def test_a_reset_ends_every_session(owners: Owners, scribe: str) -> None:
    secret = owners.sessions.start(scribe, "a", NOW)
    owners.reset_password("another long password", NOW)
    assert owners.sessions.find(secret, NOW) is None


def test_a_session_of_another_owner_is_not_ended(owners: Owners, scribe: str) -> None:
    secret = owners.sessions.start(scribe, "a", NOW)
    found = owners.sessions.find(secret, NOW)
    assert found is not None
    with pytest.raises(AppError, match="nothing here"):
        owners.sessions.end("somebodyelse123", found.id)


def test_a_token_works_until_it_is_revoked(owners: Owners) -> None:
    token, secret = owners.tokens.create("ci", {Scope.INTAKE, Scope.READ}, NOW)
    found = owners.tokens.find(secret, NOW)
    assert isinstance(found, ApiToken) and found.scopes == {"intake", "read"}
    assert secret.startswith(token.prefix)
    assert owners.tokens.all()[0].last_used == NOW
    owners.tokens.revoke("ci", later(NOW, 1))
    assert owners.tokens.find(secret, NOW) is None


def test_a_token_name_is_free_again_once_revoked(owners: Owners) -> None:
    owners.tokens.create("ci", {Scope.READ}, NOW)
    with pytest.raises(AppError) as caught:
        owners.tokens.create("ci", {Scope.READ}, NOW)
    assert caught.value.code == "name_taken"
    owners.tokens.revoke("ci", NOW)
    owners.tokens.create("ci", {Scope.READ}, NOW)


def test_a_token_is_good_for_something(owners: Owners) -> None:
    with pytest.raises(AppError) as caught:
        owners.tokens.create("ci", set(), NOW)
    assert caught.value.code == "no_scope"


def test_no_secret_is_stored_in_clear(owners: Owners, scribe: str, tmp_path: Path) -> None:
    secrets = [
        PASSWORD,
        owners.sessions.start(scribe, "a", NOW),
        owners.tokens.create("ci", {Scope.READ}, NOW)[1],
    ]
    guess(owners, NOW, name="my password by mistake")
    everything = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    for secret in [*secrets, "my password by mistake"]:
        assert secret.encode() not in everything


def test_every_statement_runs_on_the_schema_by_an_index(database: Database) -> None:
    scans = {"drop_ended_sessions", "forget_old_tries", "list_tokens", "revoke_token"}
    folder = Path(app.owners.__file__).parent
    for name, statement in statements(folder / "owners.sql").items():
        values = dict.fromkeys(_parameters(statement), "x")
        with database.read() as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        steps = [row["detail"] for row in plan if row["detail"].startswith("SCAN")]
        big = [step for step in steps if "sessions" in step or "login_tries" in step]
        assert not big or name in scans or "all" in name, (name, steps)


def _parameters(statement: str) -> set[str]:
    words = statement.replace(",", " ").replace(")", " ").replace(";", " ").split()
    return {word.lstrip("(")[1:] for word in words if word.lstrip("(").startswith(":")}
