"""Children that misbehave in the ways a real one might: the first argument says how."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from worker.boot import Channel


def main(channel: Channel, arguments: Sequence[str]) -> int:
    return globals()[arguments[0]](channel, *arguments[1:])


def echo(channel: Channel) -> int:
    for message in channel.messages():
        channel.say({"echo": message})
    return 0


def tell_environment(channel: Channel) -> int:
    descriptors = [link.name for link in Path("/proc/self/fd").iterdir()]
    channel.say({"environment": dict(os.environ), "descriptors": descriptors})
    return 0


def sleep(channel: Channel) -> int:
    channel.say({"ready": True})
    time.sleep(600)
    return 0


def write_to_stderr_endlessly(channel: Channel) -> int:
    channel.say({"ready": True})
    while True:
        os.write(2, b"noise " * 1000)


def ignore_sigterm_and_start_another(channel: Channel) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    channel.say({"grandchild": grandchild.pid})
    time.sleep(600)
    return 0


def report_endlessly(channel: Channel) -> int:
    while True:
        channel.say({"progress": 0.5})
        time.sleep(0.01)


def print_and_write_rubbish(channel: Channel) -> int:
    print("a library says hello", flush=True)  # noqa: T201 - that is the trouble
    channel.say({"after": "print"})
    channel._outgoing.write(b"this is no JSON\n")
    channel._outgoing.flush()
    time.sleep(600)
    return 0


def leave_with(channel: Channel, code: str) -> int:
    sys.stderr.write("last words")
    return int(code)


def crash(channel: Channel) -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def burn_cpu(channel: Channel) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 6))
    while True:
        pass
