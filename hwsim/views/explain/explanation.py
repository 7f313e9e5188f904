"""The explanation of a run: critical path, causes, bounds, derivations, and what-if changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hwsim.graph.opgraph import Ints
from hwsim.records import dataclass
from hwsim.results.activities import Activities, activities
from hwsim.results.checks import adds_up
from hwsim.results.critical import CriticalPath, Share, critical_path
from hwsim.results.invariants import raise_violations
from hwsim.results.result import Result
from hwsim.spec.memo import with_memo
from hwsim.views.explain.derivation import Derivation, derivations
from hwsim.views.explain.measure import ServiceMeasure
from hwsim.views.explain.sentences import sentences
from hwsim.views.explain.steps import StepRound, runs
from hwsim.views.explain.what_if import LARGEST, TriedChanges, WhatIf, what_if
from hwsim.views.kit.answer_forms import FigureAnswer


class NoSuchOp(ValueError):
    """Raised if no op of the run has a name.

    Args:
        name: name.
        names: names of the ops of the run.
    """

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        super().__init__(f"the run has no op '{name}'")
        self.name = name
        self.names = names


@dataclass(frozen=True)
class Explanation(FigureAnswer):
    """The explanation of a run; tables: accounting, critical_path, activities, derivations, what_if.

    Args:
        run: result.
        path: critical path.
        accounting: causes on the critical path, longest first; their times add up to the makespan in integer fs, and so do
            the bounds
            of `activities`.
        ops: ops on the critical path, longest first; or the requested ops.
        activities: activities and bounds.
        what_if: simulated changes; None if none was tried.
        untried: number of changes that were not tried (see `what_if.Tried`).
        sentences: sentences on the activities, and on the most helpful change.
        left: causes without a change, and changes that were refused.
        measure: measure of a service; None for the makespan.
    """

    run: Result
    path: CriticalPath
    accounting: tuple[Share, ...]
    ops: Ints
    activities: Activities
    what_if: tuple[WhatIf, ...] | None
    untried: int
    sentences: tuple[str, ...]
    left: tuple[str, ...] = ()
    measure: ServiceMeasure | None = None
    TABLE: ClassVar = "accounting"
    COLUMNS: ClassVar = ("cause", "time_s", "share")

    @cached_property
    def runs(self) -> tuple[StepRound, ...]:
        """Critical path with repeated steps joined."""
        return runs(self.run.timeline, self.path)

    @cached_property
    def derivations(self) -> tuple[Derivation, ...]:
        """Durations of the ops."""
        return derivations(self.run.timeline, self.ops)

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: explain/2`."""
        from hwsim.views.explain.document import as_dict

        return as_dict(self)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Return the figure of the critical path."""
        from hwsim.views.explain.draw import render

        return render(self, suffix)

    def __str__(self) -> str:
        from hwsim.views.explain.say import text

        return text(self)


@with_memo
def explain(
    result: Result,
    *,
    op: str | None = None,
    again: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Explanation:
    """Explain a run.

    Args:
        result: result.
        op: name of the ops to derive; default: the ops on the critical path.
        again: whether to simulate what-if changes; None: if the run has at most `what_if.LARGEST` ops.
        progress: function called with (number of simulated changes, number of all changes).

    Raises:
        NoSuchOp: no op has the name.
    """
    timeline = result.timeline
    path = critical_path(timeline)
    accounting = path.limited_by
    chosen = _longest_first(path) if op is None else _named(result, op)
    again = len(timeline) <= LARGEST if again is None else again
    tried = what_if(result, path, progress=progress) if again else None
    told = tried or TriedChanges(())
    done = activities(result)
    raise_violations(_violations(accounting, done, timeline.makespan_fs))
    return Explanation(
        run=result,
        path=path,
        accounting=accounting,
        ops=chosen,
        activities=done,
        what_if=told.rows if again else None,
        untried=told.untried,
        sentences=sentences(result.makespan_s, done, tried),
        left=told.left,
        measure=told.measure,
    )


def _violations(accounting: Sequence[Share], done: Activities, makespan_fs: int) -> Iterator[str]:
    """Yield contradictions between an explanation and its run."""
    yield from adds_up([share.time_fs for share in accounting], makespan_fs, "causes")
    yield from adds_up([part.time_fs for part in done.parts], makespan_fs, "bounds")
    for row in done.rows:
        if not 0 <= row.path_fs <= row.total_fs <= makespan_fs:
            yield f"{row.name}: {row.path_fs} fs on the critical path, {row.total_fs} fs in total, of {makespan_fs} fs"


def _longest_first(path: CriticalPath) -> Ints:
    """Return the ops of the path, longest first; of equally long ones, the earlier first."""
    ops, first, where = np.unique(path.op, return_index=True, return_inverse=True)
    spent = np.zeros(len(ops), path.end.dtype)
    np.add.at(spent, where, path.end - path.start)  # fits: parts of the makespan
    return ops[np.lexsort((first, -spent))] if len(ops) else ops


def _named(result: Result, name: str) -> Ints:
    flat = result.timeline.flat
    labels = flat.graph.labels
    named = [label.name for label in labels if label.kind != "insert" and label.device]
    sought = {op for op in named if op.startswith(f"{name}: ")} or {name}  # steps of a collective, or the op itself
    wanted = np.array([label.name in sought and label.kind != "insert" and bool(label.device) for label in labels], np.bool_)
    ops = np.flatnonzero(wanted[flat.label]) if len(flat) else np.empty(0, np.int64)
    if not len(ops):
        raise NoSuchOp(name, tuple(dict.fromkeys(label.name for label in labels if label.device)))
    return ops
