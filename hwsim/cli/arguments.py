"""Arguments that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    Text = click.ParamType[str]
else:  # a class without a parameter until click 8.3
    Text = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])


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

        found = [CompletionItem(name) for name in names(self.kind) if name.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")]


MACHINE: Final = LibraryName("machine")
WORKLOAD: Final = LibraryName("workload")
FIGURES: Final = (".png", ".svg", ".pdf")


def _settings(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """--set K=V ... as a mapping; a later one of the same path wins."""
    found: dict[str, str] = {}
    for text in values:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise click.BadParameter(f"'{text}' is not of the form PATH=VALUE", ctx, param)
        found.pop(path, None)
        found[path] = value
    return found


def once(ctx: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:
    """For an option that may be given once: click would keep the last in silence."""
    if len(values) > 1:
        raise click.BadParameter("it can be given once; run again for another file", ctx, param)
    return values[0] if values else None


def settings_option(function: F) -> F:
    """The option --set."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="PATH=VALUE",
        callback=_settings,
        help="Change one value: n=10 (a parameter), machine.gpu.count=8, ...",
    )(function)


def refuse_unwritable(plot: Path | None, option: str = "--plot") -> None:
    """A figure that could not be written: better said before the work than after it."""
    if plot is not None and plot.suffix.lower() not in FIGURES:
        raise click.BadParameter(f"a figure is written as .png, .svg or .pdf, not as '{plot.name}'", param_hint=option)
    if plot is not None and not plot.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder '{plot.parent}'", param_hint=option)
