from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.media import recordings
from tests.processes import children_of


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every recording of tests.media.recordings under its name."""
    folder = tmp_path_factory.mktemp("recordings")
    unsound = {name: make for name, (make, _) in recordings.NO_SOUND.items()}
    for name, make in {**recordings.SOUND, **recordings.CUT, **unsound}.items():
        make(folder / name)
    return folder


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = children_of()
    yield
    assert children_of() <= before
