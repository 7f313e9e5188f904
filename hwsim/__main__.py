"""The command `hwsim`, which is `python -m hwsim` too; an interrupt is heard while the first packages are imported, as later."""

from __future__ import annotations

import sys


def run() -> None:
    """Import the command line and run it."""
    try:
        from hwsim.cli import main

        main(prog_name="hwsim")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    run()
