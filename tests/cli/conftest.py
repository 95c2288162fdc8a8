import socket
from pathlib import Path

import pytest

from tests.cli.console import Console


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def console(tmp_path: Path, free_port: int) -> Console:
    return Console(tmp_path, free_port)
