"""Arguments and options shared by several commands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from hwsim.results import invariants

if TYPE_CHECKING:
    Text = click.ParamType[str]
else:  # a class without a parameter until click 8.3
    Text = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])
FILE: Final = click.Path(path_type=Path, dir_okay=False)
LEAST_COLUMNS: Final = 20  # minimum width for wrapping; narrower terminals wrap lines themselves
FIGURES: Final = (".png", ".svg", ".pdf")


class LibraryName(Text):
    """An argument type for a file, a library name or -, with shell completion of library names."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = kind

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        from hwsim.spec import names

        items = [CompletionItem(name) for name in names(self.kind) if name.startswith(incomplete)]
        return [*items, CompletionItem(incomplete, type="file")]


MACHINE: Final = LibraryName("machine")
WORKLOAD: Final = LibraryName("workload")


class LateOption(click.Group):
    """A command group that imports its commands on use; --help prints only their names and short texts."""

    def sections(self) -> Mapping[str, Mapping[str, str]]:
        """Return the short text of each command, by heading and command name."""
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return [name for words in self.sections().values() for name in words]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        for heading, words in self.sections().items():
            with formatter.section(heading):
                formatter.write_dl(list(words.items()))


def as_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse `--set PATH=VALUE ...` as a mapping; the last value of a path is used."""
    from hwsim.spec.mistakes import one_line
    from hwsim.spec.tree import unprintable

    settings: dict[str, str] = {}
    for text in values:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise click.BadParameter(f"'{one_line(text)}' is not of the form PATH=VALUE", ctx, param)
        if (bad := unprintable(text)) is not None:
            raise click.BadParameter(f"the control character U+{ord(bad):04X} is not allowed in '{one_line(text)}'", ctx, param)
        settings.pop(path, None)
        settings[path] = value
    return settings


def once(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:
    """Return the value of an option that may be given once; click would silently use the last one."""
    if len(values) > 1:
        raise click.BadParameter("expected at most once; run again for another file", ctx, param)
    return values[0] if values else None


def decorated(function: Any, decorators: Iterable[Callable[[Any], Any]]) -> Any:
    """Return a function with decorators, the first one outermost, so that --help lists options in this order."""
    for decorate in reversed([*decorators]):
        function = decorate(function)
    return function


def settings_option(function: F) -> F:
    """Add the option --set."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="PATH=VALUE",
        callback=as_settings,
        help="Change one value, for example n=10 or machine.gpu.count=8; repeatable.",
    )(function)


def refuse_two_inputs(machine: str, workload: str | None) -> None:
    """Raise UsageError if both files are standard input."""
    if machine == workload == "-":
        raise click.UsageError("only one of the two files can be standard input")


def run_arguments(function: F) -> F:
    """Add the arguments MACHINE and WORKLOAD and the option --set."""

    @wraps(function)
    def command(machine: str, workload: str, **options: Any) -> Any:
        refuse_two_inputs(machine, workload)
        return function(machine, workload, **options)

    command = settings_option(command)
    command = click.argument("workload", type=WORKLOAD)(command)
    return cast("F", click.argument("machine", type=MACHINE)(command))


def refuse_unwritable(
    path: Path | None, option: str = "--plot", thing: str = "figure", suffixes: tuple[str, ...] = FIGURES
) -> None:
    """Raise BadParameter before the run if the output file cannot be written or is an input of the command.

    Args:
        path: output file; None: no check.
        option: option that names the file.
        thing: name of its content.
        suffixes: accepted suffixes; () for any name.
    """
    if path is not None and path.is_dir():
        raise click.BadParameter(f"expected a file, got the folder '{path}'", param_hint=option)
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{path.parent}'", param_hint=option)
    if path is not None and suffixes and not path.name.lower().endswith(suffixes):
        accepted = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise click.BadParameter(f"a {thing} must end in {accepted}, got '{path.name}'", param_hint=option)
    if path is not None and any(_is_same(path, argument) for argument in _arguments()):
        raise click.BadParameter(f"'{path}' is an input of this command; choose another file", param_hint=option)
    if path is not None and (path.is_file() or not path.exists()):  # permissions are not enough to know: /proc, or a full disk
        trial = Path(os.path.realpath(path)).with_name(f".{path.name}.{os.urandom(4).hex()}.trial")
        try:
            trial.open("xb").close()
            trial.unlink()
        except OSError as error:
            raise click.BadParameter(f"'{path}' cannot be written: {error.strerror}", param_hint=option) from None


def refuse_unwritable_outputs(*outputs: Path | None) -> None:
    """Raise BadParameter if a file of --output cannot be written; any suffix is accepted."""
    for output in outputs:
        refuse_unwritable(output, "--output", "file", ())


def _arguments() -> Iterator[str]:
    """Yield the values of the command's arguments, without options."""
    context = click.get_current_context()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "") if isinstance(parameter, click.Argument) else None
        yield from map(str, value if isinstance(value, tuple) else () if value is None else (value,))


def _is_same(path: Path, name: str) -> bool:
    """Whether a path and a name refer to the same file."""
    try:
        return path.samefile(name)
    except (OSError, ValueError):  # there is none, or there can be none
        return False


def refuse_replacing(path: Path | None, thing: str, is_thing: Callable[[Path], bool]) -> None:
    """Raise BadParameter before the run if the output file exists and is not an earlier output of this kind.

    Args:
        path: output file; None: no check.
        thing: name of the output.
        is_thing: function that tests whether a file is such an output; empty files may always be replaced.
    """
    if path is None or not path.is_file() or not path.stat().st_size:  # such as /dev/null: nothing can be lost
        return
    try:
        is_ours = is_thing(path)
    except Exception:  # noqa: BLE001 (whatever a file raises that is damaged, or of another format)
        is_ours = False
    if not is_ours:
        raise click.BadParameter(
            f"'{path}' exists and is not a {thing}; remove it, or choose another file", param_hint="--output"
        )


def says(words: str, path: Path) -> bool:
    """Whether the first 4096 bytes of a file contain these words."""
    with path.open("rb") as file:
        return words.encode() in file.read(4096)


def printed(text: str, given: Iterable[str] = ()) -> str:
    """Return a text after checking it for impossible numbers, except those on the command line or in `given`."""
    return folded(invariants.checked_text(text, (*_words(click.get_current_context().params), *given)))


def folded(text: str) -> str:
    """Wrap lines at the width of the terminal, with an indent; text for files and pipes is unchanged."""
    if not sys.stdout.isatty():
        return text
    import shutil
    import textwrap

    width = max(shutil.get_terminal_size().columns, LEAST_COLUMNS)
    if all(len(line) <= width for line in text.splitlines()):
        return text
    lines: list[str] = []
    for line in text.splitlines():
        further = " " * min(len(line) - len(line.lstrip()) + 4, width // 2)
        lines += textwrap.wrap(line, width, subsequent_indent=further, break_on_hyphens=False, break_long_words=False) or [""]
    return "\n".join(lines) + "\n" * text.endswith("\n")


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value, *re.split("[=,]", value))
    elif isinstance(value, Mapping):
        yield from (word for part in (*value, *value.values()) for word in _words(part))
    elif isinstance(value, tuple | list):
        yield from (word for part in value for word in _words(part))


@contextmanager
def answered(show: Callable[[], None]) -> Iterator[None]:
    """Context in which files are written; the answer is printed afterwards, even if the disk is full."""
    try:
        yield
    except OSError:
        show()
        raise
    show()


def write_files(files: Iterable[tuple[Path | None, Callable[[Path], Path]]], *, quiet: bool = False) -> None:
    """Write each requested file with its function, then print the names."""
    written = [write(path) for path, write in files if path is not None]
    for path in written if not quiet else ():
        click.echo(f"wrote {path}", err=True)
