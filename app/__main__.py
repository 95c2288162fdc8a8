"""The `pisar` command, also as `python -m app`."""

import sys

from app.cli.root import run


def main() -> int:
    """Run the command line and give its exit code (I03)."""
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
