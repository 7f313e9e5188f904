"""The result of a run, as data: views read it, nothing here formats it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hwsim.doors import FAMILIES, read
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO, total

if TYPE_CHECKING:
    import pandas as pd

    from hwsim.doors import Server, Told
    from hwsim.families.services.results.answers import Services
    from hwsim.families.serving.results.statistics import ServiceStatistics
    from hwsim.families.training.results import Training
    from hwsim.graph.disturbance import Disturbance
    from hwsim.graph.opgraph import Change
    from hwsim.machine import Machine
    from hwsim.machine.moved import Moved
    from hwsim.results.expect import Verdict
    from hwsim.results.interval import Interval
    from hwsim.results.memory import DeviceMemory
    from hwsim.results.ops import NamesOf, OpRow, Ops
    from hwsim.results.requests import LatencyCurve, RequestStatistics
    from hwsim.results.usage import Usage
    from hwsim.spec import Tree, Warning


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A job from its start to the end of its last op, in s; last: that op, None if it has none."""

    name: str
    start_s: float
    end_s: float
    last: int | None = None

    @property
    def makespan_s(self) -> float:
        """Seconds from start to end."""
        return self.end_s - self.start_s


def job_spans(timeline: Timeline, jobs: Sequence[tuple[str, int]]) -> tuple[JobSpan, ...]:
    """One for each (name, start in fs): its programs are called `name` or `name.` and more."""
    labels = timeline.flat.graph.labels
    spans = []
    for name, start in jobs:
        is_own = np.array([label.program == name or label.program.startswith(f"{name}.") for label in labels], np.bool_)
        ops = np.flatnonzero(is_own[timeline.flat.label])
        last = max(ops.tolist(), key=lambda op: int(timeline.end[op]), default=None)
        end = start if last is None else int(timeline.end[last])
        spans.append(JobSpan(name, start / FEMTO, end / FEMTO, last))
    return tuple(spans)


ISSUING: Final = frozenset({"dispatch", "compile", "call", "insert"})  # kinds of ops by which a program's thread issues one
MOST_JOBS: Final = 32  # jobs up to which each has an interval
MovedRun = tuple["Moved", Sequence["Result"]]
Settings = Mapping[str, str]
"""Paths and values, as `--set` takes them: {"machine.cpu.coherence.cluster": "25 ns"}."""


@dataclass(frozen=True, slots=True)
class Again:
    """The files of a run, and how to prepare and simulate them again.

    Args:
        machine: file of the machine as it was run, its `use:` not yet followed.
        workload: file of the workload as it was run.
        simulate: prepares and simulates the run with further settings; raises `SpecError` if they are refused.
    """

    machine: Tree
    workload: Tree
    simulate: Callable[[Settings], Result]


@dataclass(frozen=True)
class Result:
    """A workload simulated on a machine.

    Args:
        machine, workload: their names.
        simulated: the ops that were simulated: in a folded run, the ops of one rank of each class.
        usage: one row per capacity.
        verdicts: the expectations that were checked or skipped.
        settings: keys and values that `set` changed.
        devices: name -> kind.
        memory: memory of every device that holds values of known size.
        requests: statistics of every device that was simulated request by request; curves: its latency against load.
        events: failures and slowdowns during the run; changes: the capacities that they changed, and when.
        names_of: names that labels and queues of the first rank of a class have at another rank, if the run is folded.
        families: what came of each, by key (see `told`).
        told_ends: of those that acted while it went on, with their work as fast, and as slow, as the ends of its interval.
        unfolded: makes the timeline of all ranks of a folded run that is to look like one that is not; None of another run.
        sure: whether an interval is wanted; ends: finds its ends by further runs, if that is wanted.
        moved: it with each number of the machine that no op follows at the ends of its range.
        again: how to prepare and simulate it again; None if its machine or workload was given as a value, not as a file.
        built: the machine itself.  paying: how it is paid for and where it stands (`hwsim.Paying`), None if not asked.
    """

    machine: str
    workload: str
    simulated: Timeline
    usage: tuple[Usage, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    warnings: tuple[Warning, ...] = ()
    devices: Mapping[str, str] = field(default_factory=dict)
    memory: tuple[DeviceMemory, ...] = ()
    requests: tuple[RequestStatistics, ...] = ()
    curves: tuple[LatencyCurve, ...] = ()
    jobs: tuple[JobSpan, ...] = ()
    events: tuple[Disturbance, ...] = ()
    changes: Sequence[Change] = ()
    names_of: NamesOf | None = field(default=None, repr=False, compare=False)
    families: Mapping[str, Told] = field(default_factory=dict)
    told_ends: Mapping[str, tuple[Told, Told]] = field(default_factory=dict)
    unfolded: Callable[[], Timeline] | None = field(default=None, repr=False, compare=False)
    moved: Sequence[MovedRun] = field(default=(), repr=False, compare=False)
    again: Again | None = field(default=None, repr=False, compare=False)
    sure: bool = True
    ends: Callable[[Timeline, Interval], Interval] | None = field(default=None, repr=False, compare=False)
    built: Machine | None = field(default=None, repr=False, compare=False)
    paying: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def timeline(self) -> Timeline:
        """The ops, for all who show them one by one.

        They are the ops of every rank, or, in a run that shows its classes, the ops of one rank of each class. Numbers of the
        whole run are worked out of `simulated`, which is there already.
        """
        return self.simulated if self.unfolded is None else self.unfolded()

    @property
    def makespan_s(self) -> float:
        """Seconds from the start to the end of the last op."""
        return self.simulated.makespan

    @cached_property
    def issued_s(self) -> float | None:
        """Seconds until every op was issued and had its place in a queue; None if issuing costs nothing (no runtime)."""
        last = self.last_issuing
        return None if last is None else int(self.simulated.end[last]) / FEMTO

    @cached_property
    def last_issuing(self) -> int | None:
        """The op by which the last op was issued."""
        issuing = np.array([label.kind in ISSUING for label in self.simulated.flat.graph.labels], np.bool_)
        ops = np.flatnonzero(issuing[self.simulated.flat.label]) if issuing.any() and len(self.simulated) else ()
        return int(ops[np.argmax(self.simulated.end[ops])]) if len(ops) else None

    @cached_property
    def issued_interval(self) -> Interval | None:
        """The range in which `issued_s` lies in 90 of 100 such runs."""
        if self.last_issuing is None or not self.sure:
            return None
        return self.felt(lambda run: _until(run, run.last_issuing, run.issued_s or 0.0))

    def felt(self, of: Callable[[Result], Interval]) -> Interval:
        """An interval of this run with the errors of the numbers that only whole runs follow."""
        from hwsim.results.felt import felt

        return felt(self, self.moved, of) if self.moved else of(self)

    @cached_property
    def interval(self) -> Interval:
        """The range in which the makespan, or the kernels of a service, lie in 90 of 100 such runs, and what makes it so wide."""
        return self.felt(_interval).of(self.makespan_s)

    @cached_property
    def told(self) -> Mapping[str, Told]:
        """What came of each family, by key: see `hwsim.doors`."""
        found = self.families or read(self.simulated)
        return {key: found[key] for key in FAMILIES if key in found}

    @property
    def of_kernels(self) -> bool:
        """Whether arrivals set its time, so that its interval is of its kernels."""
        return any(told.of_kernels for told in self.told.values())

    @property
    def server(self) -> Server:
        """What answers its requests, whose arrivals set its time; "" where nothing does."""
        return next((told.server for told in self.told.values() if told.server), "")

    @property
    def only_requests(self) -> bool:
        """Whether requests without ops are all there is."""
        without = any(not told.has_ops for told in self.told.values())
        return without and all(label.kind in ("service", "start") for label in self.simulated.flat.graph.labels)

    @property
    def serving(self) -> tuple[ServiceStatistics, ...]:
        """Statistics of every served model."""
        found: tuple[ServiceStatistics, ...] = self._found("infer", ())
        return found

    @property
    def services(self) -> Services | None:
        """What the services of `services:` come to."""
        found: Services | None = self._found("services", None)
        return found

    @property
    def trainings(self) -> tuple[Training, ...]:
        """Results of every `train:`."""
        found: tuple[Training, ...] = self._found("train", ())
        return found

    def _found(self, family: str, without: Any) -> Any:
        return self.told[family].found if family in self.told else without

    @cached_property
    def job_intervals(self) -> tuple[Interval | None, ...]:
        """The range in which the time of each job lies, along the path to its last op.

        None for a service, whose arrivals set its time; for all if there are more than 32 jobs.
        """
        served = {name for told in self.told.values() for name in told.timed}
        regimes = {training.program: training.errors for training in self.simulated.flat.graph.trainings}
        if not self.sure or len(self.jobs) > MOST_JOBS:
            return (None,) * len(self.jobs)
        return tuple(
            None if job.name in served or job.last is None else self.felt(partial(_of_job, at, regimes.get(job.name, "")))
            for at, job in enumerate(self.jobs)
        )

    @property
    def ops(self) -> Ops:
        """Rows: op, name, kind, device, queue, program, iteration, start_s, end_s, duration_s, waiting_s."""
        from hwsim.results.ops import Ops

        return Ops(self.timeline)

    @property
    def op_count(self) -> int:
        """Number of ops on devices, with those that the ops of a folded run represent."""
        from hwsim.results.ops import Ops

        return Ops(self.simulated).total

    @property
    def ranks(self) -> int:
        """Number of programs of the workload, with those that a folded run represents."""
        graph = self.simulated.flat.graph
        return len(graph.alike.programs) if graph.alike is not None else len({label.program for label in graph.labels})

    def rank(self, number: int) -> tuple[OpRow, ...]:
        """The ops of one rank, whether it was simulated or another one stands for it.

        Raises:
            IndexError: there is no such rank.
        """
        from hwsim.results.ops import ops_of_rank

        return ops_of_rank(self.timeline, number, self.names_of)

    @property
    def met(self) -> bool:
        """No expectation that was checked is violated."""
        return all(verdict.status != "violated" for verdict in self.verdicts)

    @property
    def fits(self) -> bool:
        """No device needed more memory than it has."""
        return all(each.fits for each in self.memory)

    def to_pandas(self) -> pd.DataFrame:
        """The ops as a table.

        Raises:
            ModuleNotFoundError: pandas is not installed; the message says what to do.
        """
        from hwsim.results.ops import OpRow

        try:
            frame = importlib.import_module("pandas").DataFrame
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError("to_pandas() needs pandas: pip install pandas", name="pandas") from missing
        names = [one.name for one in fields(OpRow)]
        rows = [[getattr(row, name) for name in names] for row in self.ops]
        table: pd.DataFrame = frame(rows, columns=names).set_index("op")
        return table

    def __repr__(self) -> str:
        return f"Result({self.workload!r} on {self.machine!r}: {self.makespan_s:.6g} s, {self.op_count:,} ops)"


def _interval(run: Result) -> Interval:
    """Of its time, or of its mean op where arrivals set that: the sum of all hangs on what arrives."""
    from hwsim.results.doubts import weights_of
    from hwsim.results.interval import interval

    regimes = {training.program: training.errors for training in run.simulated.flat.graph.trainings}
    last = max((job for job in run.jobs if job.last is not None), key=lambda job: job.end_s, default=None)
    regime = regimes.get(last.name, "") if last is not None else next(iter(regimes.values()), "")
    weights, value = weights_of(run.simulated, run.changes), run.makespan_s
    if run.of_kernels:  # what is unsure are the seconds of its kernels
        took = (run.simulated.end - run.simulated.start)[run.simulated.flat.cost >= 0]
        weights, value = weights.without_stated(), total(took) / len(took) if len(took) else 0.0
    wholes = ("", regime)[len(run.jobs) < 2 :]  # the path to a training's end may be another job's for long
    sure = max((interval(weights, value=value, whole=whole) for whole in wholes), key=lambda each: each.half)
    return sure if run.ends is None else run.ends(run.simulated, sure)


def _of_job(at: int, whole: str, run: Result) -> Interval:
    job = run.jobs[at]
    return _until(run, job.last, job.makespan_s, round(job.start_s * FEMTO), whole)


def _until(run: Result, last: int | None, value: float, since: int = 0, whole: str = "") -> Interval:
    """Of the time until an op ends."""
    from hwsim.results.doubts import weights_of
    from hwsim.results.interval import interval

    return interval(weights_of(run.simulated, run.changes, last=last, since=since), value=value, whole=whole)
