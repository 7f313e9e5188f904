"""The command line, in the process of the tests."""

from __future__ import annotations

from click.testing import CliRunner, Result

from hwsim.cli import main


def hwsim(*arguments: object, stdin: str | None = None) -> Result:
    """What `hwsim` does with these arguments."""
    return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, prog_name="hwsim")
