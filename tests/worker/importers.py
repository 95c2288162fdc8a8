"""A child that confines itself before it imports, starts a thread first, or only burns time."""

import threading
from collections.abc import Sequence

from worker.boot import Channel
from worker.sandbox import Limits, confine, libraries


def main(channel: Channel, arguments: Sequence[str]) -> int:
    if "with a thread" in arguments:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    limits = Limits(memory_bytes=2**31, cpu_seconds=1 if arguments else 60, file_bytes=0)
    try:
        confine(limits, read=libraries())
    except RuntimeError as error:
        channel.say({"refused": str(error)})
        return 0
    while "burn" in arguments:
        pass
    import av  # noqa: PLC0415 - the point: importing still works inside

    channel.say({"version": av.__version__})
    return 0
