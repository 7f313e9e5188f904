"""`python -m hwsim` is `hwsim`."""

from __future__ import annotations

from hwsim.cli import main

if __name__ == "__main__":
    main(prog_name="hwsim")
