"""A view: findings of a command about a machine, and a workload on it, as text, JSON and figure.

The view NAME is the package `hwsim.views.NAME`. Its docstring is the help of the command, its `VIEW` names the options, and
four functions do the work, imported when called (a short view has all of them in one file `hwsim/views/NAME.py`):

    find.find(machine, **options)           findings; with the option `graph` if the view needs a workload
    say.text(findings, heading, **options)  text
    say.document(findings)                  body of the JSON document
    draw.figure(findings, heading, suffix)  chunks of a PNG, SVG or PDF file
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from hwsim.spec import Warning


class ViewOption(NamedTuple):
    """An option of a command.

    Args:
        flag: flag, such as `--links`.
        name: keyword argument of `find` and `text`.
        help: help text.
        metavar: placeholder of the value in the help; "" for a switch.
        default: default value.
        choices: accepted values; () for any text.
        without: flags of options that cannot be combined with it.
    """

    flag: str
    name: str
    help: str
    metavar: str = ""
    default: str | None = ""
    choices: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Heading(NamedTuple):
    """The heading of a text, document or figure.

    Args:
        machine, workload: names.
        settings: changed settings.
        warnings: warnings printed below the text.
    """

    machine: str
    workload: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    warnings: tuple[Warning, ...] = ()

    @property
    def changes(self) -> str:
        """Changed settings as written."""
        return ", ".join(f"{path}={value}" for path, value in self.settings)


class Unshowable(Exception):
    """Raised if there is nothing to show.

    Args:
        message: message.
        hint: hint; None without one.
        option: option with the invalid value, such as `--device`; "" if the machine is the reason.
    """

    def __init__(self, message: str, hint: str | None = None, option: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.option = option


class View(NamedTuple):
    """A view by name.

    Args:
        name: name of the package and of the command.
        needs: files on the command line; a file in brackets is optional.
        schema: schema of the JSON document, such as `latency/2`.
        options: options of the command.
        plots: help of the option --plot; "" for a view without a figure.
    """

    name: str
    needs: Literal["machine", "machine [workload]"]
    schema: str
    options: tuple[ViewOption, ...]
    plots: str = "Write a figure (.png, .svg or .pdf)."

    def find(self, machine: Any, **options: Any) -> Any:
        """Return the findings.

        Raises:
            Unshowable: an option names something that does not exist, or there is nothing to show.
        """
        return self.function("find.find")(machine, **options)

    def text(self, findings: Any, heading: Heading, **options: Any) -> str:
        """Return the text, with the settings below its first line and the warnings at its end."""
        from hwsim.results.invariants import checked_text
        from hwsim.views.kit import warning_lines

        first, end, rest = checked_text(self.function("say.text")(findings, heading, **options)).partition("\n")
        changes = textwrap.wrap(f"set {heading.changes}", 98, initial_indent="  ", subsequent_indent="    ")
        return "\n".join([first, *(changes if heading.settings else ())]) + end + rest + warning_lines.text(heading.warnings)

    def document(self, findings: Any, heading: Heading) -> str:
        """Return the JSON document with sorted keys; same findings, same bytes."""
        from hwsim.results import invariants
        from hwsim.views.kit import warning_lines

        body: dict[str, Any] = {
            "hwsim": self.schema,
            "machine": heading.machine,
            "warnings": warning_lines.as_dicts(heading.warnings),
        }
        if heading.settings:
            body["set"] = dict(heading.settings)
        if "workload" in self.needs:
            body["workload"] = heading.workload or None
        return invariants.document(body | self.function("say.document")(findings))

    def figure(self, findings: Any, heading: Heading, suffix: str) -> Iterable[bytes]:
        """Return the figure as bytes of a file; same findings, same bytes with the same matplotlib.

        Raises:
            Unshowable: there is nothing to draw.
            ValueError: the suffix is not .png, .svg or .pdf.
        """
        chunks: Iterable[bytes] = self.function("draw.figure")(findings, heading, suffix)
        return chunks

    def function(self, path: str) -> Any:
        """Return a function of the view by module and name, such as `say.text`."""
        module, _, function = path.partition(".")
        home = import_module(f"hwsim.views.{self.name}")
        return getattr(import_module(f"{home.__name__}.{module}") if hasattr(home, "__path__") else home, function)
