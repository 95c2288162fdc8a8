"""The short forms of benchmarks/soak; ten minutes of each: `make bench-soak`."""

from pathlib import Path

import pytest

from benchmarks.soak import crowding, killing


@pytest.mark.engine
def test_q20_killed_at_random_under_load_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    report = killing.soak(tmp_path, seconds=3, seed=20, line=2)
    assert not report.faults, str(report)
    # So few kills spend no job's attempts, so each comes to its text.
    assert report.facts["ended done"] == report.facts["accepted"], str(report)
    assert report.facts["accepted"], str(report)
    assert report.facts["voice messages"], str(report)


def test_q24_eight_writers_and_a_reader_never_see_the_store_locked(tmp_path: Path) -> None:
    report = crowding.soak(tmp_path, seconds=3, seed=24)
    assert not report.faults, str(report)
    assert report.facts["lists read meanwhile"], str(report)
