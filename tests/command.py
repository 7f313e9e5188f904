"""The command line, in the process of the tests."""

from __future__ import annotations

from click.testing import CliRunner, Result

from hwsim.cli import main


def hwsim(*arguments: object, code: int | None = 0, stdin: str | None = None) -> Result:
    """What `hwsim` does with these arguments.  It ends with this exit code, or with any for None; no error escapes it."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin, prog_name="hwsim")
    if code not in (done.exit_code, None) or not isinstance(done.exception, SystemExit | None):
        raise AssertionError(f"exit code {done.exit_code}, not {code}: {done.output}") from done.exception
    return done
