"""The double as a process of its own: prints its address and token, then does as lines say."""

import argparse
import sys

from tests.telegram.double.console import HELP, Console
from tests.telegram.double.telegram import TOKEN, Telegram


def main() -> None:
    """Serve until the lines end."""
    parser = argparse.ArgumentParser(prog="python -m tests.telegram.double")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--name", default="Alpha", help="the person's name")
    parser.add_argument("--local", action="store_true", help="as a server of one's own")
    parser.add_argument("--sees-all", action="store_true", help="no privacy mode in groups")
    chosen = parser.parse_args()
    with Telegram(chosen.token, port=chosen.port, is_local=chosen.local) as telegram:
        telegram.network.sees_all = chosen.sees_all
        _write(f"PISAR_TELEGRAM__API_URL={telegram.api_url}\n")
        _write(f"PISAR_TELEGRAM__TOKEN={telegram.token}\n\n{HELP}")
        Console(telegram, _write, chosen.name).run(sys.stdin)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
