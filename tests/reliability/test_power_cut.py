"""The power goes: what was acknowledged before is there when it is back, rows and bytes."""

import random
from pathlib import Path

import pytest

from tests.reliability.loop_disk import NoDiskError
from tests.reliability.power_cut import Cut, cuts
from tests.reliability.power_writers import NO_SYNC, NORMAL, SAFE


def made(folder: Path, how: str, number: int) -> list[Cut]:
    """So many cuts; skips where the machine lets us make no disk of our own."""
    chance = random.Random(12)  # noqa: S311 - the moments only have to differ
    try:
        return list(cuts(folder, how, number, chance))
    except NoDiskError as error:
        pytest.skip(f"no disk whose power could be cut: {error}")


def test_q21_hazard_12_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    found = made(tmp_path, SAFE, 6)
    assert [cut.lost for cut in found] == [[]] * 6
    assert {cut.integrity for cut in found} == {"ok"}
    assert found[-1].acknowledged > found[0].acknowledged > 3


@pytest.mark.parametrize("how", [NORMAL, NO_SYNC])
def test_q21_the_same_cuts_show_the_loss_where_syncs_are_left_out(tmp_path: Path, how: str) -> None:
    """Else the test above would prove nothing."""
    found = made(tmp_path, how, 2)
    lost = [line for cut in found for line in cut.lost]
    assert lost, f"{sum(cut.acknowledged for cut in found)} acknowledged, and none lost"
