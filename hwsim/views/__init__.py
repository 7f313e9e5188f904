"""Views of machines and runs: a package each, with findings (find.py), text and JSON (say.py) and a figure (draw.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from hwsim.families_interface import FAMILIES, family_module

if TYPE_CHECKING:
    from hwsim.results.result import Result
    from hwsim.views.kit.view import View

VIEWS: Final = {  # views of a machine; each is a package and a command
    "latency": "Latency of each level: caches, memory, disks, links, network.",
    "roofline": "Roofline of a device, with the ops of a workload.",
    "collectives": "Time of a collective by message size, as nccl-tests print it.",
}


def view(name: str) -> View:
    """Return the view with this name."""
    loaded: View = import_module(f"hwsim.views.{name}").VIEW
    return loaded


Figure = Callable[["Result", str], Iterable[bytes]]


def _drawn(module: str, family: str = "") -> Figure:
    """Return the function `render` of a module of this package or of a family, imported at the first call."""

    def render(result: Result, suffix: str) -> Iterable[bytes]:
        found = family_module(family, module) if family else import_module(f"hwsim.views.{module}")
        chunks: Iterable[bytes] = found.render(result, suffix)
        return chunks

    return render


SCENES: Final = ("lanes", "launches", "requests", "sends")  # animations of a run (`hwsim.views.animate.draw`)
FIGURES: Final[dict[str, Figure]] = {
    "gantt": _drawn("gantt.draw"),
    "interval": _drawn("interval.draw"),
    "latency": _drawn("curves.draw"),
    "memory": _drawn("memory.draw"),
    **{family.figure: _drawn("draw", key) for key, family in FAMILIES.items() if family.figure},
}
