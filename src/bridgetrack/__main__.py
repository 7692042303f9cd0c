"""The program; its commands are imported when it runs, which takes a second or two."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line on the arguments of this process; see `bridgetrack.cli.main.main`."""
    if sys.argv[1:2] != ["open"]:  # a window ends by itself
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does
    try:
        from bridgetrack.cli.main import main as command

        return command()
    except KeyboardInterrupt:  # while it starts, or for the second time
        from bridgetrack.errors import INTERRUPTION

        sys.stderr.write(f"{INTERRUPTION}\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
