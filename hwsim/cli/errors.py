"""Print errors of the user as a message with an exit code, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from hwsim import ticks
from hwsim.cli import EXIT_FAILED, EXIT_MISTAKE
from hwsim.engine import Deadlock
from hwsim.spec import SpecError


@contextmanager
def print_errors() -> Iterator[None]:
    """Context that turns mistakes in files into exit code 2, and a deadlock into exit code 1."""
    try:
        yield
    except SpecError as error:
        click.echo(str(error), err=True)
        click.get_current_context().exit(EXIT_MISTAKE)
    except ticks.TooLong as error:
        click.echo(f"{error.message}\n    hint: {error.hint}", err=True)
        click.get_current_context().exit(EXIT_MISTAKE)
    except Deadlock as error:
        click.echo(f"the run cannot finish: {error}", err=True)
        click.get_current_context().exit(EXIT_FAILED)
