"""Views of machines and runs: a folder each, with findings (find.py), text and JSON (say.py) and a figure (draw.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from hwsim.doors import FAMILIES, room

if TYPE_CHECKING:
    from hwsim.results.result import Result
    from hwsim.views.kit.view import View

VIEWS: Final = {  # of a machine: each a package and a command
    "latency": "How long one of everything takes on a machine: caches, disks, networks, GPUs.",
    "roofline": "The ceilings of a device, and a workload's ops below them.",
    "collectives": "Time of an all-reduce or another collective on a machine, by size and algorithm.",
}


def view(name: str) -> View:
    """The view in the package of that name."""
    loaded: View = import_module(f"hwsim.views.{name}").VIEW
    return loaded


Report = Callable[["Result", str], Iterable[bytes]]


def report(module: str, family: str = "") -> Report:
    """Function `render` of a module of this package, or of a family, imported when it is first called."""

    def render(result: Result, suffix: str) -> Iterable[bytes]:
        found = room(family, module) if family else import_module(f"hwsim.views.{module}")
        chunks: Iterable[bytes] = found.render(result, suffix)
        return chunks

    return render


REPORTS: Final[dict[str, Report]] = {
    "explain": report("explain.document"),
    "gantt": report("gantt.draw"),
    "html": report("summary.html"),
    "json": report("summary.document"),
    "memory": report("memory.draw"),
    "page": report("report.of_run"),
    "summary": report("summary.say"),
    "trace": report("trace.write"),
}
_FIGURES: Final[dict[str, Report]] = {
    "gantt": REPORTS["gantt"],
    "interval": report("interval.draw"),
    "latency": report("curves.draw"),
    "memory": REPORTS["memory"],
    **{each.figure: report("draw", key) for key, each in FAMILIES.items() if each.figure},
}
FIGURES: Final = dict(sorted(_FIGURES.items()))
