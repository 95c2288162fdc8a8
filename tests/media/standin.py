"""A converter that misbehaves as tests.worker.troublemakers does; the source file says how."""

from collections.abc import Sequence
from pathlib import Path

from tests.worker import troublemakers
from worker.boot import Channel


def main(channel: Channel, _: Sequence[str]) -> int:
    order = next(channel.messages())
    return troublemakers.main(channel, [Path(order["source"]).read_text()])
