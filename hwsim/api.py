"""The functions of `import hwsim`: read both files, lower, simulate, check.

`hwsim.prepare` reads both files and lowers the workload on the machine; `hwsim.playing` simulates it; here the result is
collected, checked, and compared with the `expect:` of the workload.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from hwsim.doors import read
from hwsim.engine import Which
from hwsim.graph.opgraph import Change, Names, OpGraph
from hwsim.machine import Machine
from hwsim.playing import Manner, Played, Progress, play
from hwsim.prepare import Lowered, Source, graph_file, load_machine, load_workload, loads, not_felt, prepare, with_all_ranks
from hwsim.results.checks import check, notes
from hwsim.results.expect import lacking, refuse_part_of_day, skipped_for, verdicts
from hwsim.results.result import Result
from hwsim.results.timeline import Timeline
from hwsim.results.usage import of_all, usage
from hwsim.spec import SpecError, Tree, different
from hwsim.views.kit.shown import Picture, Shown, drawn
from hwsim.workload import Workload
from hwsim.workload.events import late
from hwsim.workload.lower import Folding, Writing

if TYPE_CHECKING:  # reports, and what few runs have, are imported when they are asked for
    import pandas as pd

    from hwsim.costs.bill import Paying
    from hwsim.doors import Told
    from hwsim.results.critical import Share
    from hwsim.results.interval import Interval
    from hwsim.results.memory import DeviceMemory
    from hwsim.results.ops import NamesOf
    from hwsim.results.result import Again, JobSpan, MovedRun
    from hwsim.views.explain.explanation import Explanation

__all__ = [
    "ExpectationFailed", "Lowered", "OutOfMemory", "Progress", "Run", "Source", "load_machine", "load_workload", "loads",
    "prepare", "simulate", "simulated",
]  # fmt: skip

FEW: Final = 100  # ops, up to which two more runs take no time worth a word
FigureName = Literal["failures", "gantt", "interval", "latency", "memory", "queues", "services", "serving"]


class ExpectationFailed(Exception):
    """An expectation of the workload is violated; `run` is the complete result."""

    def __init__(self, run: Run) -> None:
        self.run = run
        violated = (verdict for verdict in run.verdicts if verdict.status == "violated")
        super().__init__("; ".join(f"{verdict.quantity} {verdict.wanted}: {verdict.reason}" for verdict in violated))


class OutOfMemory(ExpectationFailed):
    """A device has too little memory; `run` is the result with enough of it."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.args = ("; ".join(device.verdict() for device in run.memory if not device.fits),)


class Run(Shown, Result):
    """A result with the reports at hand.

    >>> copy = {"copy": {"from": "cpu", "to": "gpu0", "bytes": "160 MB"}}
    >>> run = simulate("d2l-4gpu-pcie", {"hwsim": "workload/1", "program": [copy]})
    >>> str(run.limited_by[0].cause)
    'uplink:cpu->psw'
    """

    TABLE = "capacities"

    @property
    def limited_by(self) -> tuple[Share, ...]:
        """Causes along the critical path, with times that add up to the makespan."""
        from hwsim.results.critical import limited_by

        return limited_by(self.simulated)

    def to_json(self, *, ops: bool = False) -> dict[str, Any]:
        """The document `hwsim: result/1`; with a row per op if asked for."""
        from hwsim.views.summary.document import as_dict

        return as_dict(self, ops=ops)

    def trace(self, path: str | Path) -> Path:
        """Write the timeline for Perfetto; packed if the name ends in .gz."""
        from hwsim.views.kit.writing import write
        from hwsim.views.trace.write import render

        return write(path, render(self, Path(path).suffix))

    @overload
    def plot(self, figure: FigureName = "gantt", path: None = None) -> Picture: ...

    @overload
    def plot(self, figure: str, path: str | Path) -> Path: ...

    @overload
    def plot(self, figure: str | Path, path: None = None) -> Picture | Path: ...

    def plot(self, figure: str | Path = "gantt", path: str | Path | None = None) -> Picture | Path:
        """Write a figure of `hwsim.views.FIGURES` (.png, .svg or .pdf), or give it to a notebook.

        Args:
            figure: gantt, latency, memory, queues, services or serving; a file alone gets the gantt.

        Returns:
            The file; without a path a picture, which a notebook shows.

        Raises:
            ValueError: no such figure, or another suffix.
        """
        from hwsim.views import FIGURES

        if path is None and Path(figure).suffix:
            figure, path = "gantt", figure
        render = FIGURES.get(str(figure))
        if render is None:
            raise ValueError(f"there is no figure '{figure}'; there are {', '.join(sorted(FIGURES))}")
        return drawn(partial(render, self), path)

    def explain(self, *, op: str | None = None, what_if: bool | None = None, progress: Progress | None = None) -> Explanation:
        """Say why the run takes as long as it does, and what would help; arguments as of `hwsim.explain`."""
        from hwsim.views.explain.explanation import explain

        return explain(self, op=op, again=what_if, progress=progress)

    def to_pandas(self, table: str = "ops") -> pd.DataFrame:
        """The ops as a table, or another list of rows of `to_json()`: "capacities", "limited_by", "each", "memory", ...

        Raises:
            ValueError: no such list.
            ModuleNotFoundError: pandas is not installed; the message says what to do.
        """
        return Result.to_pandas(self) if table == "ops" else Shown.to_pandas(self, table)

    def animate(self, scene: str, path: str | Path) -> Path:
        """Write an animation of `hwsim.views.SCENES`, an .svg.

        Raises:
            ValueError: no such scene, the run has nothing of it, or another suffix.
        """
        from hwsim.views import SCENES

        if scene not in SCENES:
            raise ValueError(f"there is no animation '{scene}'; there are {', '.join(SCENES)}")
        from hwsim.views.animate.draw import render
        from hwsim.views.kit.figure import suffix_of
        from hwsim.views.kit.writing import write

        return write(path, render(self, scene, suffix_of(path)))

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser: the answer, what limits it, what it rests on, and the timeline; nothing else is needed."""
        from hwsim.views.kit.writing import write
        from hwsim.views.report.of_run import render

        return write(path, render(self))

    def summary(self, *, verbose: bool = False) -> str:
        """The text that `hwsim simulate` prints; verbose: as with -v."""
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
        machine, workload: a path, a name of the library, the text of a file, or a loaded value; a workload may also be an
            op graph, or the path of one (graph.npz).
        set: paths and values to change in the files, `{"machine.gpu.count": 8}`.
        expect: check the `expect:` of the workload ("auto": if it names this machine and nothing is set).
        requests: parts to simulate request by request, in addition to those with `fidelity: requests`.
        latency: also find the latency of their requests at any load (for `Run.plot("latency", ...)`).
        progress: called from time to time with the ops done and the ops known.
        fold: show one of identical ranks: if they are many ("auto"), always, or never. With "auto" few are all shown, whether all
            were simulated or one for the others.
        interval: how sure the time is, along the critical path (True; of few ops with two more runs at its ends), with two more
            runs of any number of ops ("runs"), or not.
        paying: prices, a way to pay and a site, for what it costs (`hwsim.Paying`).
        engine: "simpy": op by op as SimPy processes, which is slow and gives the same times ("auto": the fastest).

    Raises:
        SpecError: all mistakes of both files; a part that cannot be simulated request by request.
        Deadlock: ops wait for each other.
        OutOfMemory: a device does not have the memory that the values of the run take.
        ExpectationFailed: an expectation that was checked is violated.
        BrokenInvariant: the result contradicts itself (a defect of hwsim).
    """
    writing: Writing = "never" if requests else "unseen" if fold == "auto" else fold
    lowered = prepare(machine, workload, set=set, fold=writing)
    parts = (requests,) if isinstance(requests, str) else tuple(requests)
    manner = Manner(parts, latency=latency, progress=progress, engine=engine)
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
    check(run, graph_file(workload))  # before a verdict: a result that contradicts itself has none
    if not run.fits:
        raise OutOfMemory(run)
    if not run.met:
        raise ExpectationFailed(run)
    return run


def simulated(machine: Source | Machine, workload: Source | Workload | OpGraph, **options: Any) -> Run:
    """As `simulate`, without a verdict: the run, even if it does not fit its memory."""
    try:
        return simulate(machine, workload, expect=False, **options)
    except ExpectationFailed as failed:
        return failed.run


def _collected(lowered: Lowered, played: Played, *, expect: bool | Literal["auto"], **more: Any) -> Run:
    """The result of a run, with the verdicts on what its files expect; more: as of a result."""
    timeline = played.timeline
    used, alike = usage(timeline), timeline.flat.graph.alike
    if alike is not None and alike.unseen:
        used = of_all(used, alike)
    values = {"makespan": timeline.makespan}
    spans: tuple[JobSpan, ...] = ()
    if lowered.jobs:
        from hwsim.results.result import job_spans

        spans = job_spans(timeline, lowered.jobs)
        values |= {f"{job.name}.makespan": job.makespan_s for job in spans}
    written = read(timeline, lowered.files[1] if lowered.files else None)
    for told in (*played.acted.values(), *written.values()):
        values |= told.expected()
    for each in played.opened.values():
        used = tuple(each.usage(used, timeline.makespan_fs))
    passed = late(lowered.workload.events, timeline.makespan) if lowered.workload and lowered.workload.events else ()
    felt = not_felt(lowered.workload, lowered.machine, timeline.flat.graph, lowered.doors.values(), over=True)
    warnings = different(lowered.warnings, notes(timeline), *(told.warnings() for told in played.acted.values()), felt, passed)
    memory = _memory(lowered, timeline, played.acted)
    return Run(
        machine=lowered.machine_name, workload=lowered.workload_name, simulated=timeline, usage=used,
        verdicts=verdicts(lowered.wanted, values, called=lowered.called, changed=bool(lowered.settings), expect=expect,
                          lacking=lacking(warnings, memory)),
        settings=lowered.settings, warnings=warnings, devices=lowered.machine.kinds, memory=memory, requests=played.requests,
        curves=played.curves, jobs=spans, events=lowered.events, changes=lowered.changes, names_of=_names_of(lowered),
        families={**written, **played.acted}, built=lowered.machine, **more,
    )  # fmt: skip


def _unfolded(lowered: Lowered, manner: Manner, folded: Timeline) -> Callable[[], Timeline] | None:
    """A function that makes the timeline of all ranks, once; None where views show the ranks that were simulated."""
    if lowered.graph.alike is None or not lowered.graph.alike.unseen:
        return None
    return cache(partial(_of_all_ranks, lowered, replace(manner, latency=False, progress=None), folded))


def _of_all_ranks(lowered: Lowered, manner: Manner, folded: Timeline) -> Timeline:
    """The timeline of all ranks.

    Raises:
        BrokenInvariant: it contradicts the folded one, from which the numbers are (a defect of hwsim).
    """
    from hwsim.results.differences import replicas_differ
    from hwsim.results.invariants import refuse

    timeline = play(with_all_ranks(lowered), manner).timeline
    refuse(replicas_differ(folded, timeline))
    return timeline


def _ends(lowered: Lowered, played: Played, interval: bool | Literal["runs"]) -> Callable[[Timeline, Interval], Interval] | None:
    """A search for the ends by further runs; None if they are not wanted, or the graph alone is not the run."""
    timeline = played.timeline
    # what happens at a stated time is not in proportion to the path
    few = interval is True and max(len(timeline), lowered.graph.shown) <= FEW * (100 if lowered.changes else 1)
    acts = any(door.issues or lowered.changes for door in lowered.doors.values())
    if acts or len(timeline.played) or not (few or interval == "runs"):
        return None
    return partial(_by_runs, lowered.changes)


def _moved(lowered: Lowered, manner: Manner, fold: Writing) -> Sequence[MovedRun]:
    """The run with each number of the machine that its ops do not follow at both ends of its range.

    Raises:
        SpecError: there is none.
    """
    still, runs = replace(manner, latency=False, progress=None), []
    for number in lowered.unsure:
        try:
            others = [prepare(end, lowered.workload or lowered.graph, fold=fold) for end in number.ends]
            runs.append((number, [_collected(other, play(other, still), expect=False) for other in others]))
        except SpecError as error:
            message = f"no answer carries how unsure this number is ({number.origin!s}): moved, {error.mistakes[0].message}"
            raise SpecError.of(number.place, message, "leave out its `spread` or its source") from error
    return runs


def _by_runs(changes: Sequence[Change], timeline: Timeline, interval: Interval) -> Interval:
    from hwsim.engine.ends import by_runs  # of who asks how sure it is

    return by_runs(timeline, interval, changes=changes)


def _at_ends(run: Run, lowered: Lowered, manner: Manner) -> Run:
    """The run with what its services come to if all they do is as fast, and as slow, as the ends of the interval have it."""

    def ends(half: float) -> list[Played]:
        still = replace(manner, latency=False, progress=None)
        return [play(lowered, replace(still, slower=slower)) for slower in (math.exp(-half), math.exp(half))]

    found = {}
    for key in lowered.doors.keys() & run.told.keys():
        fast, slow = (end.acted.get(key) for end in ends(run.told[key].half(run)))
        if fast is not None and slow is not None:
            found[key] = fast, slow
    return replace(run, told_ends=found)


def _again(lowered: Lowered, **options: Any) -> Again | None:
    if lowered.files is None:
        return None
    from hwsim.results.result import Again

    return Again(*lowered.files, partial(_with, lowered.files, options))


def _with(files: tuple[Tree, Tree], options: Mapping[str, Any], settings: Mapping[str, str]) -> Run:
    """The run with further settings."""
    return simulated(*files, set=settings, **options)


def _memory(lowered: Lowered, timeline: Timeline, told: Mapping[str, Told]) -> tuple[DeviceMemory, ...]:
    held = [value for key, plan in lowered.doors.items() for value in plan.holds(told.get(key))] if lowered.jobs else []
    # a service alone was checked
    if not lowered.graph.buffers and not held:
        return ()
    from hwsim.results.memory import memory, memory_sizes

    return memory(timeline, memory_sizes(lowered.machine, lowered.graph, held), held)


def _names_of(lowered: Lowered) -> NamesOf | None:
    """A function for the names of the ops of a rank that another rank represents."""
    workload, alike = lowered.workload, lowered.graph.alike
    if workload is None or alike is None:
        return None

    def names(rank: int) -> Names:
        from hwsim.workload.naming import names_of

        return names_of(workload, lowered.machine, alike, rank)

    return names
