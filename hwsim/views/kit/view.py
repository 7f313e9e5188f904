"""A view: findings of a command in a machine (and a workload on it), as text, JSON and figure.

A view `NAME` is the package `hwsim.views.NAME`. Its docstring is the help of the command, its `VIEW` names the options, and four
functions do the work, imported when they are called (a short view has them all in the one file `hwsim/views/NAME.py`):

    find.find(machine, **options)           findings; `graph` is an option where the view asks for it
    say.text(findings, heading, **options)  text
    say.document(findings)                  the body of the JSON document
    draw.figure(findings, heading, suffix)  chunks of a file: PNG, SVG or PDF
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from hwsim.spec import Warning


class Option(NamedTuple):
    """An option of a command.

    Args:
        flag: as it is typed, `--links`.
        name: keyword argument of `find` and `text`.
        metavar: what stands for its value in the help; "" for a switch.
        default: value if the option is not given.
        choices: the only values; () for any text.
        without: flags of options that cannot be given with it.
    """

    flag: str
    name: str
    help: str
    metavar: str = ""
    default: str | None = ""
    choices: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Heading(NamedTuple):
    """Names above a text, a document or a figure, what was set for it, and the warnings below it."""

    machine: str
    workload: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    warnings: tuple[Warning, ...] = ()

    @property
    def changes(self) -> str:
        """The settings, as they were written."""
        return ", ".join(f"{path}={value}" for path, value in self.settings)


class Unshowable(Exception):
    """Nothing to show.

    Args:
        option: the option whose value is at fault, `--device`; "" if it is the machine.
    """

    def __init__(self, message: str, hint: str | None = None, option: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.option = option


class View(NamedTuple):
    """A view by its name.

    Args:
        needs: files on the command line; the last one may be left out if in brackets.
        schema: first entry of its JSON document, `latency/1`.
        plots: help of the option --plot; "" for a view that draws nothing.
    """

    name: str
    needs: Literal["machine", "machine [workload]"]
    schema: str
    options: tuple[Option, ...]
    plots: str = "Write a figure (.png, .svg or .pdf)."

    def find(self, machine: Any, **options: Any) -> Any:
        """The findings.

        Raises:
            Unshowable: an option names something that does not exist, or there is nothing to show.
        """
        return self.function("find.find")(machine, **options)

    def text(self, findings: Any, heading: Heading, **options: Any) -> str:
        """The text, with what was set below its first line, and the warnings below it."""
        from hwsim.results.invariants import printed
        from hwsim.views.kit import warned

        first, end, rest = printed(self.function("say.text")(findings, heading, **options)).partition("\n")
        changes = textwrap.wrap(f"set {heading.changes}", 98, initial_indent="  ", subsequent_indent="    ")
        return "\n".join([first, *(changes if heading.settings else ())]) + end + rest + warned.text(heading.warnings)

    def document(self, findings: Any, heading: Heading) -> str:
        """The JSON document, keys sorted: same findings, same bytes."""
        from hwsim.results import invariants
        from hwsim.views.kit import warned

        body: dict[str, Any] = {"hwsim": self.schema, "machine": heading.machine, "warnings": warned.as_dicts(heading.warnings)}
        if heading.settings:
            body["set"] = dict(heading.settings)
        if "workload" in self.needs:
            body["workload"] = heading.workload or None
        return invariants.document(body | self.function("say.document")(findings))

    def figure(self, findings: Any, heading: Heading, suffix: str) -> Iterable[bytes]:
        """The figure as bytes of a file; same findings, same bytes with the same matplotlib.

        Raises:
            Unshowable: there is nothing to draw.
            ValueError: the suffix is none of .png, .svg, .pdf.
        """
        chunks: Iterable[bytes] = self.function("draw.figure")(findings, heading, suffix)
        return chunks

    def function(self, path: str) -> Any:
        """A function of the view by module and name, such as `say.text`."""
        module, _, function = path.partition(".")
        home = import_module(f"hwsim.views.{self.name}")
        return getattr(import_module(f"{home.__name__}.{module}") if hasattr(home, "__path__") else home, function)
