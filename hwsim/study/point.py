"""One point of a study: simulated where an executor likes, so what goes in and out is small and can be pickled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from hwsim import __version__
from hwsim.api import OutOfMemory, Source, load_machine, simulate
from hwsim.engine import Deadlock
from hwsim.invariants import CONTRADICTS, DEFECT, BrokenInvariant
from hwsim.machine import Machine
from hwsim.records import dataclass
from hwsim.spec import Mistakes, SpecError, Tree, Warning, apply_set, different, find, read, resolve, tree_of
from hwsim.study.measures import TIME, NoSuchNumber, measure, measures, number
from hwsim.study.work import Work, work_of
from hwsim.views.explain.critical import limited_by
from hwsim.views.kit.table import causes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a point.

    makespan_s: seconds; None if it failed.  limited_by: what it spent most of its time on, and the `share` of it.
    error: why it failed, in one line.  fingerprint: stands for all that went in; empty if that could not be read.
    measures: what else the run has (see `hwsim.study.measures`), and the number that was asked for.
    warnings: those of the run.  work: how much it did, the most telling first.
    """

    makespan_s: float | None = None
    limited_by: str = ""
    share: float | None = None
    error: str = ""
    fingerprint: str = ""
    measures: tuple[tuple[str, float], ...] = ()
    warnings: tuple[Warning, ...] = ()
    work: tuple[Work, ...] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """What a machine or workload says; equal to another if that says the same, settings and used files put in.

    digest: of all that; empty if a used file cannot be found.
    """

    kind: Literal["machine", "workload"]
    digest: str
    tree: Tree = field(compare=False, repr=False)

    @classmethod
    def of(cls, kind: Literal["machine", "workload"], tree: Tree) -> Said:
        mistakes = Mistakes()
        text = json.dumps(resolve(tree, mistakes, kind=kind).plain(), default=str)
        return cls(kind, "" if len(mistakes) else sha256(text.encode()).hexdigest(), tree)

    def become(self, tree: Tree) -> Said:
        """The same for another tree; nothing to do if that is the one it has."""
        return self if tree is self.tree else Said.of(self.kind, tree)


def read_source(kind: Literal["machine", "workload"], source: Source) -> Said:
    """Read a machine or workload, once for all points.

    Raises:
        SpecError: there is no such file, or it is no YAML.
    """
    if isinstance(source, Tree):
        return Said.of(kind, source)
    if isinstance(source, Mapping):
        return Said.of(kind, tree_of(source))
    if isinstance(source, Path) or source == "-" or "\n" in source:
        return Said.of(kind, read(source))
    return Said.of(kind, read(find(kind, source)))


def changed(machine: Said, workload: Said, settings: Mapping[str, object]) -> tuple[Said, Said, tuple[Warning, ...]]:
    """Both with the settings of a point, and the warnings of the settings.

    Raises:
        SpecError: a setting leads nowhere.
    """
    machine_tree, workload_tree, warnings = machine.tree, workload.tree, list[Warning]()
    for path, value in settings.items():
        machine_tree, workload_tree, warning = apply_set(machine_tree, workload_tree, path, value)
        warnings += [warning] if warning else []
    return machine.become(machine_tree), workload.become(workload_tree), tuple(warnings)


def fingerprint_of(machine: Said, workload: Said) -> str:
    """The same for two points if both files say the same to the same version of hwsim; empty if one cannot be read."""
    if not machine.digest or not workload.digest:
        return ""
    return sha256(f"{__version__} {machine.digest} {workload.digest}".encode()).hexdigest()[:16]


def run_point(machine: Said, workload: Said, settings: Mapping[str, object], by: str = "") -> Outcome:
    """Simulate one point; what is wrong with it becomes its outcome.  by: a number that the outcome shall have."""
    fingerprint = ""
    warnings: tuple[Warning, ...] = ()
    try:
        machine, workload, warnings = changed(machine, workload, settings)
        fingerprint = fingerprint_of(machine, workload)
        run = simulate(_built(machine) if machine.digest else machine.tree, workload.tree, expect=False)
    except SpecError as error:
        return Outcome(error=_in_one_line(error), fingerprint=fingerprint, warnings=_small(warnings))
    except Deadlock as error:
        return Outcome(error=" ".join(str(error).split()), fingerprint=fingerprint, warnings=_small(warnings))
    except OutOfMemory as error:
        found = different(warnings, error.run.warnings)
        return Outcome(error=" ".join(str(error).split()), fingerprint=fingerprint, warnings=_small(found))
    except BrokenInvariant as error:
        return Outcome(error=f"{CONTRADICTS}: {error}; {DEFECT}", fingerprint=fingerprint, warnings=_small(warnings))
    asked: tuple[tuple[str, float], ...] = ()
    if by:
        column = measure(by)
        try:
            asked = ((column.column, number(run, column, run.to_json)),)
        except NoSuchNumber as error:
            return Outcome(error=f"{error} ({error.hint})", fingerprint=fingerprint, warnings=_small(warnings))
    name, share = next(iter(causes(limited_by(run.timeline))), ("", None))
    found = _small(different(warnings, run.warnings))
    more = dict((*measures(run), *asked))
    more.pop(TIME, None)
    return Outcome(run.makespan_s, name, share, "", fingerprint, tuple(more.items()), found, work_of(run))


def _small(warnings: tuple[Warning, ...]) -> tuple[Warning, ...]:
    """The warnings without the text of the files that they point into: each point sends them to the first process."""
    return tuple(replace(each, place=replace(each.place, source=None)) if each.place else each for each in warnings)


@lru_cache(maxsize=2)
def _built(machine: Said) -> Machine:
    """Most studies vary one side; a machine that stays is built once per process."""
    return load_machine(machine.tree)


def _in_one_line(error: SpecError) -> str:
    """All mistakes, what is wrong first; without the lines they stand in, and that a value was set is known."""
    said = []
    for each in error.mistakes:
        at = each.place if each.place and each.place.file and not each.place.file.startswith("--") else None
        more = [each.hint or "", f"at {replace(at, file=Path(at.file).name)}" if at else ""]
        hint = "; ".join(filter(None, more))
        said.append(each.message + (f" ({hint})" if hint else ""))
    return "; ".join(said)
