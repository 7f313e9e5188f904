"""One point of a study: simulated where an executor likes, so what goes in and out is small and can be pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hwsim import __version__
from hwsim.api import Source, simulate
from hwsim.engine import Deadlock
from hwsim.explain.critical import limited_by
from hwsim.reports.table import causes
from hwsim.spec import Mistakes, SpecError, Tree, apply_set, find, read, resolve, tree_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a point.

    makespan_s: seconds; None if it failed.  limited_by: what it spent most of its time on, and the `share` of it.
    error: why it failed, in one line.  fingerprint: stands for all that went in; empty if that could not be read.
    """

    makespan_s: float | None = None
    limited_by: str = ""
    share: float | None = None
    error: str = ""
    fingerprint: str = ""


def tree_from(kind: str, source: Source) -> Tree:
    """What a machine or workload says, read once for all points.

    Raises:
        SpecError: there is no such file, or it is no YAML.
    """
    if isinstance(source, Tree):
        return source
    if isinstance(source, Mapping):
        return tree_of(source)
    if isinstance(source, Path) or source == "-" or "\n" in source:
        return read(source)
    return read(find(kind, source))


def run_point(machine: Tree, workload: Tree, settings: Mapping[str, object]) -> Outcome:
    """Simulate one point; what is wrong with it becomes its outcome."""
    fingerprint = ""
    try:
        fingerprint = fingerprint_of(machine, workload, settings)
        run = simulate(machine, workload, set=settings, expect=False)
    except SpecError as error:
        return Outcome(error=_in_one_line(error), fingerprint=fingerprint)
    except Deadlock as error:
        return Outcome(error=" ".join(str(error).split()), fingerprint=fingerprint)
    name, share = next(iter(causes(limited_by(run.timeline))), ("", None))
    return Outcome(run.makespan_s, name, share, "", fingerprint)


def fingerprint_of(machine: Tree, workload: Tree, settings: Mapping[str, object]) -> str:
    """The same for two points if, settings and used files put in, both files say the same to the same version of hwsim.

    Raises:
        SpecError: a setting leads nowhere, or a used file cannot be read.
    """
    for path, value in settings.items():
        machine, workload, _ = apply_set(machine, workload, path, value)
    mistakes = Mistakes()
    said = [resolve(machine, mistakes, kind="machine").plain(), resolve(workload, mistakes, kind="workload").plain()]
    mistakes.raise_if_any()
    return sha256(json.dumps([__version__, *said], default=str).encode()).hexdigest()[:16]


def _in_one_line(error: SpecError) -> str:
    """All mistakes without the lines they stand in; that a value was set is known."""
    said = []
    for each in error.mistakes:
        place = f"{each.place}: " if each.place and each.place.file and not each.place.file.startswith("--") else ""
        hint = f" ({each.hint})" if each.hint else ""
        said.append(place + each.message + hint)
    return "; ".join(said)
