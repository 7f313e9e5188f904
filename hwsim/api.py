"""Python interface: read both files, lower the workload, simulate, and check the result.

`hwsim.prepare` reads both files and lowers the workload on the machine, and `hwsim.simulation` simulates it. This module collects
the result, checks it, and compares it with the `expect:` of the workload.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from hwsim.engine import Which
from hwsim.families_interface import read
from hwsim.graph.opgraph import Change, OpGraph, RankNames
from hwsim.machine import Machine
from hwsim.prepare import (
    LoweredWorkload,
    Source,
    graph_file,
    load_machine,
    load_workload,
    loads,
    prepare,
    warn_of_unused_events,
    with_all_ranks,
)
from hwsim.results.checks import check, notes
from hwsim.results.expect import lacking, refuse_part_of_day, skipped_for, verdicts
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.results.usage import unfold_usage, usage
from hwsim.simulation import Progress, SimulatedRun, SimulationOptions, play
from hwsim.spec import SpecError, Tree, distinct_warnings
from hwsim.views.kit.answer_forms import NotebookAnswer, NotebookPicture, write_figure
from hwsim.workload import Workload
from hwsim.workload.events import events_after_end
from hwsim.workload.lower import Folding, Writing

if TYPE_CHECKING:  # reports and rare features are imported on first use
    import pandas as pd

    from hwsim.costs.bill import Paying
    from hwsim.families_interface import FamilyResult
    from hwsim.results.critical import Share
    from hwsim.results.interval import Interval
    from hwsim.results.memory import DeviceMemory
    from hwsim.results.ops import NamesOf
    from hwsim.results.result import JobSpan, MovedRun, PreparedRun
    from hwsim.views.explain.explanation import Explanation

__all__ = [
    "ExpectationFailed", "LoweredWorkload", "OutOfMemory", "Progress", "Run", "Source", "load_machine", "load_workload", "loads",
    "prepare", "simulate", "simulated",
]  # fmt: skip

FEW: Final = 100  # ops up to which two more runs take negligible time
FigureName = Literal["failures", "gantt", "interval", "latency", "memory", "queues", "services", "serving"]


class ExpectationFailed(Exception):
    """An error for a violated expectation of the workload; `run` is the complete result."""

    def __init__(self, run: Run) -> None:
        self.run = run
        violated = (verdict for verdict in run.verdicts if verdict.status == "violated")
        super().__init__("; ".join(f"{verdict.quantity} {verdict.expected}: {verdict.reason}" for verdict in violated))


class OutOfMemory(ExpectationFailed):
    """An error for a device with too little memory; `run` is the result with sufficient memory."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.args = ("; ".join(device.verdict() for device in run.memory if not device.fits),)


class Run(NotebookAnswer, Result):
    """A result of a simulation, with methods for reports, figures and tables.

    >>> copy = {"copy": {"from": "cpu", "to": "gpu0", "bytes": "160 MB"}}
    >>> run = simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "program": [copy]})
    >>> str(run.limited_by[0].cause)
    'uplink:cpu->psw'
    """

    TABLE = "capacities"

    @property
    def limited_by(self) -> tuple[Share, ...]:
        """Causes along the critical path, with times whose sum is the makespan."""
        from hwsim.results.critical import limited_by

        return limited_by(self.simulated)

    def to_json(self, *, ops: bool = False) -> dict[str, Any]:
        """Return the document `hwsim: result/2`; with `ops`, including a row per op."""
        from hwsim.views.summary.document import as_dict

        return as_dict(self, ops=ops)

    def trace(self, path: str | Path) -> Path:
        """Write the timeline for Perfetto, compressed if the name ends in .gz; return the path."""
        from hwsim.views.kit.file_output import write
        from hwsim.views.trace.write import render

        return write(path, render(self, Path(path).suffix))

    @overload
    def plot(self, figure: FigureName = "gantt", path: None = None) -> NotebookPicture: ...

    @overload
    def plot(self, figure: str, path: str | Path) -> Path: ...

    @overload
    def plot(self, figure: str | Path, path: None = None) -> NotebookPicture | Path: ...

    def plot(self, figure: str | Path = "gantt", path: str | Path | None = None) -> NotebookPicture | Path:
        """Write a figure of `hwsim.views.FIGURES` (.png, .svg or .pdf), or return it for a notebook.

        Args:
            figure: gantt, latency, memory, queues, services or serving; if it is the only argument, it may be the path of a
                Gantt chart.
            path: path of the file.

        Returns:
            The path; without a path a picture, which a notebook shows.

        Raises:
            ValueError: unknown figure or suffix.
        """
        from hwsim.views import FIGURES

        if path is None and Path(figure).suffix:
            figure, path = "gantt", figure
        render = FIGURES.get(str(figure))
        if render is None:
            raise ValueError(f"there is no figure '{figure}': expected one of {', '.join(sorted(FIGURES))}")
        return write_figure(partial(render, self), path)

    def explain(self, *, op: str | None = None, what_if: bool | None = None, progress: Progress | None = None) -> Explanation:
        """Explain the duration of the run, and what would reduce it; arguments as in `hwsim.explain`."""
        from hwsim.views.explain.explanation import explain

        return explain(self, op=op, again=what_if, progress=progress)

    def to_pandas(self, table: str = "ops") -> pd.DataFrame:
        """Return a table of the ops, or of another list in `to_json()`: "capacities", "limited_by", "each", "memory", ...

        Raises:
            ValueError: unknown list.
            ModuleNotFoundError: pandas is not installed.
        """
        return Result.to_pandas(self) if table == "ops" else NotebookAnswer.to_pandas(self, table)

    def animate(self, scene: str, path: str | Path) -> Path:
        """Write an animation of `hwsim.views.SCENES` as .svg; return the path.

        Raises:
            ValueError: unknown scene or suffix, or the run has no data for the scene.
        """
        from hwsim.views import SCENES

        if scene not in SCENES:
            raise ValueError(f"there is no animation '{scene}': expected one of {', '.join(SCENES)}")
        from hwsim.views.animate.draw import render
        from hwsim.views.kit.figure import suffix_of
        from hwsim.views.kit.file_output import write

        return write(path, render(self, scene, suffix_of(path)))

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page with result, bottleneck, sources and timeline; return the path."""
        from hwsim.views.kit.file_output import write
        from hwsim.views.report.run_page import render

        return write(path, render(self))

    def summary(self, *, verbose: bool = False) -> str:
        """Return the text that `hwsim simulate` prints; `verbose`: as with -v."""
        from hwsim.views.summary.say import summary

        return summary(self, verbose=verbose)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from hwsim.views.summary.html import fragment

        return fragment(self)


def simulate(
    machine: Source | Machine,
    workload: Source | Workload | OpGraph,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the word of the command line)
    expect: bool | Literal["auto"] = "auto",
    requests: str | Sequence[str] = (),
    latency: bool = False,
    progress: Progress | None = None,
    fold: Folding = "auto",
    engine: Which = "auto",
    interval: bool | Literal["runs"] = True,
    paying: Paying | None = None,
) -> Run:
    """Simulate a workload on a machine.

    Args:
        machine, workload: path, name of the library, text of a file, or loaded value; a workload may also be an op graph, or the
            path of one (graph.npz).
        set: values to change in the files, by path: `{"machine.gpu.count": 8}`.
        expect: whether to check the `expect:` of the workload; "auto": if it names this machine and `set` is empty.
        requests: parts to simulate request by request, in addition to those with `fidelity: requests`.
        latency: whether to compute the latency of their requests at any load (for `Run.plot("latency", ...)`).
        progress: callback with the numbers of completed and of known ops.
        fold: whether results show one rank of each class of identical ranks: always, never, or if there are many ranks ("auto").
        engine: "auto": fastest engine; "simpy": SimPy processes, which are slow and have the same times.
        interval: whether to compute a 90 % interval of the time: True: along the critical path, for few ops with two more runs at
            its limits; "runs": with two more runs for any number of ops; False: none.
        paying: prices, pricing option and site, for the cost of the run (`hwsim.Paying`).

    Raises:
        SpecError: mistakes of both files, or a part that cannot be simulated request by request.
        Deadlock: ops wait for each other.
        OutOfMemory: the values of the run exceed the memory of a device.
        ExpectationFailed: a checked expectation is violated.
        BrokenInvariant: the result is inconsistent (a defect of hwsim).
    """
    writing: Writing = "never" if requests else "unseen" if fold == "auto" else fold
    lowered = prepare(machine, workload, set=set, fold=writing)
    parts = (requests,) if isinstance(requests, str) else tuple(requests)
    manner = SimulationOptions(parts, latency=latency, progress=progress, engine=engine)
    played = play(lowered, manner)
    more: dict[str, Any] = {
        "unfolded": _unfolded(lowered, manner, played.timeline),
        "again": _again(lowered, requests=requests, fold=fold),
        "sure": bool(interval),
        "ends": _ends(lowered, played, interval),
        "paying": paying,
        "moved": _moved(lowered, manner, writing) if interval else (),
    }
    run = _collected(lowered, played, expect=expect, **more)
    if not skipped_for(lowered.wanted, called=lowered.called, changed=bool(lowered.settings), expect=expect):
        refuse_part_of_day(lowered.wanted, run.warnings)
    if interval == "runs":
        run = _at_ends(run, lowered, manner)
    check(run, graph_file(workload))  # before the verdicts, which need a consistent result
    if not run.fits:
        raise OutOfMemory(run)
    if not run.met:
        raise ExpectationFailed(run)
    return run


def simulated(machine: Source | Machine, workload: Source | Workload | OpGraph, **options: Any) -> Run:
    """Simulate like `simulate`, but return the run without checks of memory and expectations."""
    try:
        return simulate(machine, workload, expect=False, **options)
    except ExpectationFailed as failed:
        return failed.run


def _collected(lowered: LoweredWorkload, played: SimulatedRun, *, expect: bool | Literal["auto"], **more: Any) -> Run:
    """The result of a run with verdicts on its expectations; `more`: further fields of the result."""
    timeline = played.timeline
    used, alike = usage(timeline), timeline.flat.graph.alike
    if alike is not None and alike.unseen:
        used = unfold_usage(used, alike)
    values = {"makespan": timeline.makespan}
    spans: tuple[JobSpan, ...] = ()
    if lowered.jobs:
        from hwsim.results.result import job_spans

        spans = job_spans(timeline, lowered.jobs)
        values |= {f"{job.name}.makespan": job.makespan_s for job in spans}
    written = read(timeline, lowered.files[1] if lowered.files else None)
    for told in (*played.acted.values(), *written.values()):
        values |= told.expected()
    for opened in played.opened.values():
        used = tuple(opened.usage(used, timeline.makespan_fs))
    ended = events_after_end(lowered.workload.events, timeline.makespan) if lowered.workload and lowered.workload.events else ()
    unfelt = warn_of_unused_events(lowered.workload, lowered.machine, timeline.flat.graph, lowered.doors.values(), over=True)
    warnings = distinct_warnings(
        lowered.warnings, notes(timeline), *(told.warnings() for told in played.acted.values()), unfelt, ended
    )
    memory = _memory(lowered, timeline, played.acted)
    return Run(
        machine=lowered.machine_name, workload=lowered.workload_name, simulated=timeline, usage=used,
        verdicts=verdicts(lowered.wanted, values, called=lowered.called, changed=bool(lowered.settings), expect=expect,
                          lacking=lacking(warnings, memory)),
        settings=lowered.settings, warnings=warnings, devices=lowered.machine.kinds, memory=memory, requests=played.requests,
        curves=played.curves, jobs=spans, events=lowered.events, changes=lowered.changes, names_of=_names_of(lowered),
        families={**written, **played.acted}, built=lowered.machine, **more,
    )  # fmt: skip


def _unfolded(lowered: LoweredWorkload, manner: SimulationOptions, folded: Timeline) -> Callable[[], Timeline] | None:
    """A cached function that returns the timeline of all ranks; None if views show only the simulated ranks."""
    if lowered.graph.alike is None or not lowered.graph.alike.unseen:
        return None
    return cache(partial(_of_all_ranks, lowered, replace(manner, latency=False, progress=None), folded))


def _of_all_ranks(lowered: LoweredWorkload, manner: SimulationOptions, folded: Timeline) -> Timeline:
    """The timeline of all ranks.

    Raises:
        BrokenInvariant: it differs from the folded timeline (a defect of hwsim).
    """
    from hwsim.results.differences import replicas_differ
    from hwsim.results.invariants import raise_violations

    timeline = play(with_all_ranks(lowered), manner).timeline
    raise_violations(replicas_differ(folded, timeline))
    return timeline


def _ends(
    lowered: LoweredWorkload, played: SimulatedRun, interval: bool | Literal["runs"]
) -> Callable[[Timeline, Interval], Interval] | None:
    """A function that computes the limits of the interval by further runs; None if not requested, or if families add ops."""
    timeline = played.timeline
    # changes at stated times do not scale with the path
    is_small = interval is True and max(len(timeline), lowered.graph.shown) <= FEW * (100 if lowered.changes else 1)
    acts = any(door.issues or lowered.changes for door in lowered.doors.values())
    if acts or len(timeline.played) or not (is_small or interval == "runs"):
        return None
    return partial(_by_runs, lowered.changes)


def _moved(lowered: LoweredWorkload, manner: SimulationOptions, fold: Writing) -> Sequence[MovedRun]:
    """Runs with each uncertain number of the machine that no op includes, at both limits of its range.

    Raises:
        SpecError: the run fails at a limit.
    """
    still, runs = replace(manner, latency=False, progress=None), []
    for number in lowered.unsure:
        try:
            others = [prepare(end, lowered.workload or lowered.graph, fold=fold) for end in number.ends]
            runs.append((number, [_collected(other, play(other, still), expect=False) for other in others]))
        except SpecError as error:
            message = f"no result includes the uncertainty of this number ({number.origin!s}): {error.mistakes[0].message}"
            raise SpecError.of(number.place, message, "omit its `spread` or its source") from error
    return runs


def _by_runs(changes: Sequence[Change], timeline: Timeline, interval: Interval) -> Interval:
    from hwsim.engine.interval_limits import limits_by_runs

    return limits_by_runs(timeline, interval, changes=changes)


def _at_ends(run: Run, lowered: LoweredWorkload, manner: SimulationOptions) -> Run:
    """The run with the results of its services at both limits of the interval of their times."""

    def ends(half: float) -> list[SimulatedRun]:
        still = replace(manner, latency=False, progress=None)
        return [play(lowered, replace(still, slower=slower)) for slower in (math.exp(-half), math.exp(half))]

    ends_of = {}
    for key in lowered.doors.keys() & run.told.keys():
        fast, slow = (end.acted.get(key) for end in ends(run.told[key].half(run)))
        if fast is not None and slow is not None:
            ends_of[key] = fast, slow
    return replace(run, told_ends=ends_of)


def _again(lowered: LoweredWorkload, **options: Any) -> PreparedRun | None:
    if lowered.files is None:
        return None
    from hwsim.results.result import PreparedRun

    return PreparedRun(*lowered.files, partial(_with, lowered.files, options))


def _with(files: tuple[Tree, Tree], options: Mapping[str, Any], settings: Mapping[str, str]) -> Run:
    return simulated(*files, set=settings, **options)


def _memory(lowered: LoweredWorkload, timeline: Timeline, told: Mapping[str, FamilyResult]) -> tuple[DeviceMemory, ...]:
    held = [value for key, plan in lowered.doors.items() for value in plan.holds(told.get(key))] if lowered.jobs else []
    # the memory of a single service was already checked
    if not lowered.graph.buffers and not held:
        return ()
    from hwsim.results.memory import memory, memory_sizes

    return memory(timeline, memory_sizes(lowered.machine, lowered.graph, held), held)


def _names_of(lowered: LoweredWorkload) -> NamesOf | None:
    """A function from a represented rank to the names of its ops."""
    workload, alike = lowered.workload, lowered.graph.alike
    if workload is None or alike is None:
        return None

    def names(rank: int) -> RankNames:
        from hwsim.workload.rank_names import names_of

        return names_of(workload, lowered.machine, alike, rank)

    return names
