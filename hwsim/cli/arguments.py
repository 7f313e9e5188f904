"""Arguments that several commands take."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import textwrap
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
LEAST_COLUMNS: Final = 20  # of a terminal; narrower ones break lines themselves
FIGURES: Final = (".png", ".svg", ".pdf")


class LibraryName(Text):
    """A file, a name of the library, or - ; the shell completes names of the library."""

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
    """A group whose commands are made when they are used: the help takes their names and words alone."""

    def sections(self) -> Mapping[str, Mapping[str, str]]:
        """Heading -> name of a command -> its words."""
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return [name for words in self.sections().values() for name in words]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        for heading, words in self.sections().items():
            with formatter.section(heading):
                formatter.write_dl(list(words.items()))


def as_settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """--set K=V ... as a mapping; the last value of a path wins."""
    from hwsim.spec.mistakes import one_line
    from hwsim.spec.tree import unprintable

    settings: dict[str, str] = {}
    for text in values:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise click.BadParameter(f"'{one_line(text)}' is not of the form PATH=VALUE", ctx, param)
        if (bad := unprintable(text)) is not None:
            raise click.BadParameter(f"the control character U+{ord(bad):04X} does not belong in '{one_line(text)}'", ctx, param)
        settings.pop(path, None)
        settings[path] = value
    return settings


def once(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:
    """The value of an option that may be given once; click alone would keep the last."""
    if len(values) > 1:
        raise click.BadParameter("it can be given once; run again for another file", ctx, param)
    return values[0] if values else None


def decorated(function: Any, decorators: Iterable[Callable[[Any], Any]]) -> Any:
    """A function with decorators, the first of them outermost: in the order of the help."""
    for decorate in reversed([*decorators]):
        function = decorate(function)
    return function


def settings_option(function: F) -> F:
    """The option --set."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="PATH=VALUE",
        callback=as_settings,
        help="Change one value, for example n=10 or machine.gpu.count=8; repeatable.",
    )(function)


def refuse_two_inputs(machine: str, workload: str | None) -> None:
    """Raise if both files are standard input."""
    if machine == workload == "-":
        raise click.UsageError("only one of the two files can be standard input")


def run_arguments(function: F) -> F:
    """The arguments MACHINE and WORKLOAD, one of them perhaps standard input, and the option --set."""

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
    """Raise, before the work is done, if a file could not be written after it, or is one that the command reads.

    Args:
        thing: a word for its content.
        suffixes: accepted ends of its name; () for any name.
    """
    if path is not None and path.is_dir():
        raise click.BadParameter(f"'{path}' is a folder", param_hint=option)
    if path is not None and not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{path.parent}'", param_hint=option)
    if path is not None and suffixes and not path.name.lower().endswith(suffixes):
        accepted = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise click.BadParameter(f"a {thing} is written as {accepted}, not as '{path.name}'", param_hint=option)
    if path is not None and any(_is_same(path, argument) for argument in _arguments()):
        raise click.BadParameter(f"'{path}' is read by this command: write another file", param_hint=option)
    if path is not None and (path.is_file() or not path.exists()):  # permissions are not enough to know: /proc, or a full disk
        trial = Path(os.path.realpath(path)).with_name(f".{path.name}.{secrets.token_hex(4)}.trial")
        try:
            trial.open("xb").close()
            trial.unlink()
        except OSError as error:
            raise click.BadParameter(f"'{path}' cannot be written: {error.strerror}", param_hint=option) from None


def refuse_unwritable_outputs(*outputs: Path | None) -> None:
    """The same of what a command writes to --output, under any name."""
    for output in outputs:
        refuse_unwritable(output, "--output", "file", ())


def _arguments() -> Iterator[str]:
    """Values of the command's arguments, options left out."""
    context = click.get_current_context()
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "") if isinstance(parameter, click.Argument) else None
        yield from map(str, value if isinstance(value, tuple) else () if value is None else (value,))


def _is_same(path: Path, name: str) -> bool:
    """Whether both are one file."""
    try:
        return path.samefile(name)
    except (OSError, ValueError):  # there is none, or there can be none
        return False


def refuse_replacing(path: Path | None, thing: str, is_thing: Callable[[Path], bool]) -> None:
    """Raise, before the work is done, if a file is there that is no earlier output of its kind.

    Args:
        thing: what the command writes, in words.
        is_thing: whether it wrote a file; an empty one may always be replaced.
    """
    if path is None or not path.is_file() or not path.stat().st_size:  # such as /dev/null: nothing can be lost
        return
    try:
        is_ours = is_thing(path)
    except Exception:  # noqa: BLE001 (whatever a file raises that is damaged, or of another format)
        is_ours = False
    if not is_ours:
        raise click.BadParameter(f"'{path}' is there, and no {thing}; remove it, or write another file", param_hint="--output")


def says(words: str, path: Path) -> bool:
    """Whether the first lines of a file have these words."""
    with path.open("rb") as file:
        return words.encode() in file.read(4096)


def printed(text: str, given: Iterable[str] = ()) -> str:
    """A text, once it shows no impossible number but those that the user wrote: on the command line, or `given`, in a file."""
    return folded(invariants.checked_text(text, (*_words(click.get_current_context().params), *given)))


def folded(text: str) -> str:
    """Lines longer than the terminal is wide go on in the next line, indented; what goes into a file or a pipe stays as it is."""
    if not sys.stdout.isatty():
        return text
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
        yield from (word for each in (*value, *value.values()) for word in _words(each))
    elif isinstance(value, tuple | list):
        yield from (word for each in value for word in _words(each))


@contextmanager
def answered(show: Callable[[], None]) -> Iterator[None]:
    """Write files inside; the answer is shown after that, also where a disk is full: what was computed is not lost."""
    try:
        yield
    except OSError:
        show()
        raise
    show()


def write_files(files: Iterable[tuple[Path | None, Callable[[Path], Path]]], *, quiet: bool = False) -> None:
    """Write each file that was requested, with its function, then report the names."""
    written = [write(path) for path, write in files if path is not None]
    for path in written if not quiet else ():
        click.echo(f"wrote {path}", err=True)
