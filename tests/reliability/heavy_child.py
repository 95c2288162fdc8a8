"""Stands in for an engine's child: it only takes its time."""

import time
from collections.abc import Sequence

from worker.boot import Channel


def main(channel: Channel, arguments: Sequence[str]) -> int:
    time.sleep(float(arguments[0]))
    channel.say({"done": True})
    return 0
