"""The command line: parse arguments, call the function of the command, print its answer.

Exit codes:

0    success
1    the run cannot finish, or a file cannot be written
2    a mistake in the arguments or the files
3    an expectation or a requirement is violated
4    hwsim contradicts itself, which is a defect of hwsim
128  plus the number of the signal that ended a study, such as an interrupt (130)
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

import click

from hwsim.cli.arguments import LateOption
from hwsim.results.invariants import CONTRADICTS, DEFECT, BrokenInvariant
from hwsim.version import __version__
from hwsim.views import VIEWS

# numpy starts a thread per core for linear algebra; a simulator does none, and they cost 0.1 s of CPU at start-up
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(200_000, 20, 100)  # hardly anything in a run refers to itself; looking for it every 700 objects took a tenth
atexit.register(gc.freeze)  # nor is anything that ends with the process looked for: an eighth of a small run

SECTIONS: Final = {  # in the order of --help; each command is a module of a package `cli`
    "Run": {
        "simulate": "Run a workload on a machine: time, bottleneck, utilization.",
        "explain": "Show why a run takes as long as it does, and what would speed it up.",
        "explore": "Open an interactive page: sliders, timeline, machine diagram.",
    },
    "Compare and decide": {
        "sweep": "Run a workload for every combination of some values.",
        "study": "Run a large experiment from a file: grids, lists, random samples.",
        "compare": "Explain the difference between two machines, workloads or runs.",
        "sensitivity": "Rank uncertain inputs by effect on the result; find break-even points.",
        "plan": "Find the best machine, count and parallel plan that meet requirements.",
    },
    "Models and components": {"estimate": "Estimate a training step or an inference batch in closed form.", **VIEWS},
    "Real machines and traces": {
        "calibrate": "Measure this computer and write its machine file.",
        "record": "Run a NumPy, CuPy or PyTorch script and write it as a workload.",
        "score": "Compare predictions with measurements, and keep them to correct later predictions.",
        "import": "Read a profile, trace, benchmark log or model config of another tool.",
        "export": "Write a run as a Kineto trace or as input of Chakra.",
    },
    "Files": {
        "check": "Validate files and report every mistake with line and column.",
        "show": "Print a machine, part or workload with the source of each number.",
        "new": "Create a machine and a workload file to start from.",
        "course": "Write exercises with different numbers for each student, and check the answers.",
        "schema": "Print the JSON Schema of a kind of file, for editors.",
        "doctor": "Show what is installed, and how to install what is missing.",
    },
}
COMMANDS: Final = {name: words for commands in SECTIONS.values() for name, words in commands.items()}
MEASURING: Final = frozenset({"calibrate", "record"})  # commands in the package hwsim_calibrate
EXIT_FAILED: Final = 1
EXIT_MISTAKE: Final = 2
EXIT_VIOLATED: Final = 3
EXIT_BROKEN: Final = 4
EXIT_INTERRUPTED: Final = 130
LONG: Final = 1.0  # CPU time after which a missing compiled core is reported (seconds)


class Commands(LateOption):
    """The subcommands of `hwsim`, imported on use, so that --help is fast."""

    def sections(self) -> dict[str, dict[str, str]]:
        return SECTIONS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in VIEWS:
            from hwsim.cli.views import view_command

            return view_command(cmd_name)
        home = "hwsim_calibrate" if cmd_name in MEASURING else "hwsim"
        module = "imports" if cmd_name == "import" else cmd_name  # a module cannot be called by a keyword
        command: click.Command = import_module(f"{home}.cli.{module}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the subcommand as click does, with a suggestion for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"there is no command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run as click does; print system errors without a traceback, also for --help."""
        _open_closed_streams()
        try:
            return super().main(*args, **extra)
        except BrokenPipeError:  # the reader of the output closed it: click ends quietly
            raise
        except OSError as error:
            with suppress(OSError):  # of the messages themselves
                click.echo(system_error(error), err=True)
            _drop_what_nobody_takes()
            sys.exit(EXIT_FAILED)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors that users can cause print a message without a traceback."""
        _speak_utf8()
        try:
            found = super().invoke(ctx)
            if ctx.invoked_subcommand != "doctor":  # which says it itself
                _say_what_was_slow()
            return found
        except KeyboardInterrupt as interrupt:
            click.echo("interrupted", err=True)
            ctx.exit(128 + interrupt.args[0] if interrupt.args else EXIT_INTERRUPTED)  # by the number of the signal
        except BrokenInvariant as error:
            click.echo(f"{CONTRADICTS}: {error}\n    {DEFECT}", err=True)
            ctx.exit(EXIT_BROKEN)
        except MemoryError:
            click.echo("there is not enough memory for this; fewer ops, requests or points need less", err=True)
            ctx.exit(EXIT_FAILED)


_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})  # no free files, processes or memory


def system_error(error: OSError) -> str:
    """Return the text of a system error, with the file or the resource first."""
    if error.errno is None:
        return str(error)
    nameless = "the working directory" if error.errno == errno.ENOENT else "the system" if error.errno in _SHORT else "the output"
    named = error.filename if error.filename is not None else nameless
    return f"{named}: {error.strerror or os.strerror(error.errno)}"


def _say_what_was_slow() -> None:
    """Print a hint if a long run was simulated without the compiled core."""
    core = sys.modules.get("hwsim.engine.core")
    if core is not None and not core.is_there() and time.process_time() > LONG:
        click.echo(
            "hint: hwsim is installed without its compiled core, which plays large runs faster: see `hwsim doctor`", err=True
        )


def _open_closed_streams() -> None:
    """Redirect closed standard streams to the null device; otherwise a file opened later would receive their output."""
    closed = [number for number in range(3) if not _is_open(number)]
    for number in closed:
        os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if number > 0:
            name = ("stdin", "stdout", "stderr")[number]
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def _drop_what_nobody_takes() -> None:
    """Redirect streams that cannot be flushed to the null device; otherwise Python flushes again and changes the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # a stream in memory has no number
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _speak_utf8() -> None:
    """Write UTF-8 without terminal control characters; on Windows, pipes would use the code page of the locale."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        encoding = getattr(stream, "encoding", None) or "utf-8"  # a stream in memory has none
        if encoding.lower().replace("-", "") != "utf8" and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8")
        if not isinstance(stream, Terminal):
            setattr(sys, name, Terminal(stream))


class Terminal:
    """A stream that escapes terminal control characters, because names come from untrusted files."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> Any:
        """Write a text with control characters escaped."""
        from hwsim.spec.tree import printable

        return self._stream.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="hwsim %(version)s")
@click.option("--no-limits", is_flag=True, help="Lift the limits on ops and requests per run.")
def main(*, no_limits: bool) -> None:
    """Predict how long a workload takes on a machine, find its bottleneck, and compare alternatives."""
    if no_limits:
        os.environ["HWSIM_LIMITS"] = "off"  # the processes of a study see it, too
