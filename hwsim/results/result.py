"""The result of a run as data; views format it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hwsim.families_interface import FAMILIES, read
from hwsim.records import dataclass
from hwsim.results.timeline import Timeline
from hwsim.ticks import FEMTO, total

if TYPE_CHECKING:
    import pandas as pd

    from hwsim.families.services.results.responses import Services
    from hwsim.families.serving.results.statistics import ServiceStatistics
    from hwsim.families.training.results import TrainingResult
    from hwsim.families_interface import FamilyResult, Server
    from hwsim.graph.disturbance import Disturbance
    from hwsim.graph.opgraph import Change
    from hwsim.machine import Machine
    from hwsim.machine.moved_numbers import MovedNumber
    from hwsim.results.errors import ErrorTable
    from hwsim.results.expect import Verdict
    from hwsim.results.interval import Interval
    from hwsim.results.memory import DeviceMemory
    from hwsim.results.ops import NamesOf, OpRow, Ops
    from hwsim.results.requests import LatencyCurve, RequestStatistics
    from hwsim.results.usage import Usage
    from hwsim.spec import Tree, Warning


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A job of a run from its start to the end of its last op.

    Args:
        name: name of the job.
        start_s, end_s: start and end (s).
        last: number of its last op; None for a job without ops.
    """

    name: str
    start_s: float
    end_s: float
    last: int | None = None

    @property
    def makespan_s(self) -> float:
        """Duration (s)."""
        return self.end_s - self.start_s


def job_spans(timeline: Timeline, jobs: Sequence[tuple[str, int]]) -> tuple[JobSpan, ...]:
    """Return the span of each job (name, start in fs); a job's programs are called `name`, `name.0`, `name.1` and so on."""
    labels = timeline.flat.graph.labels
    spans = []
    for name, start in jobs:
        is_own = np.array([label.program == name or label.program.startswith(f"{name}.") for label in labels], np.bool_)
        ops = np.flatnonzero(is_own[timeline.flat.label])
        last = max(ops.tolist(), key=lambda op: int(timeline.end[op]), default=None)
        end = start if last is None else int(timeline.end[last])
        spans.append(JobSpan(name, start / FEMTO, end / FEMTO, last))
    return tuple(spans)


ISSUING: Final = frozenset({"dispatch", "compile", "call", "insert"})  # kinds of ops that issue another op
MOST_JOBS: Final = 32  # largest number of jobs with intervals
MovedRun = tuple["MovedNumber", Sequence["Result"]]
Settings = Mapping[str, str]
"""Paths and values of `--set`, such as {"machine.cpu.coherence.cluster": "25 ns"}."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A prepared run that can be simulated again with other settings.

    Args:
        machine: file of the machine before its `use:` is resolved.
        workload: file of the workload.
        simulate: function that prepares and simulates the run with further settings; raises `SpecError` if they are invalid.
    """

    machine: Tree
    workload: Tree
    simulate: Callable[[Settings], Result]


@dataclass(frozen=True)
class Result:
    """A workload simulated on a machine.

    Args:
        machine, workload: names.
        simulated: simulated ops; in a folded run, the ops of one rank of each class.
        usage: use of each capacity.
        verdicts: expectations, checked or skipped.
        settings: keys and values changed with `set`.
        warnings: warnings of the run.
        devices: kind of each device by name.
        memory: memory of each device that stores values of known size.
        requests: statistics of each device that was simulated request by request.
        curves: latency of these devices against load.
        jobs: spans of the jobs.
        events: failures and slowdowns during the run.
        changes: capacity changes caused by the events, with their times.
        names_of: function from a rank to the names of its labels and queues; None if the run is not folded.
        families: results of the workload families by key (see `told`).
        told_ends: results by family at both ends of the interval: with all work as fast, and as slow, as the ends.
        unfolded: function that builds the timeline of all ranks; None if `simulated` has all of them already.
        sure: whether intervals are computed.
        ends: function that refines the interval with two further runs; None if not requested.
        moved: results with each machine number at the ends of its range, for numbers that no single op depends on.
        again: prepared run; None if the machine or workload was a value instead of a file.
        built: machine as an object.
        paying: payment option and location (`hwsim.Paying`); None without costs.
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
    families: Mapping[str, FamilyResult] = field(default_factory=dict)
    told_ends: Mapping[str, tuple[FamilyResult, FamilyResult]] = field(default_factory=dict)
    unfolded: Callable[[], Timeline] | None = field(default=None, repr=False, compare=False)
    moved: Sequence[MovedRun] = field(default=(), repr=False, compare=False)
    again: PreparedRun | None = field(default=None, repr=False, compare=False)
    sure: bool = True
    ends: Callable[[Timeline, Interval], Interval] | None = field(default=None, repr=False, compare=False)
    built: Machine | None = field(default=None, repr=False, compare=False)
    paying: Any = field(default=None, repr=False, compare=False)

    @cached_property
    def timeline(self) -> Timeline:
        """Ops to show one by one: of every rank, or of one rank of each class in a run shown by classes.

        Totals of the run come from `simulated`, which needs no unfolding.
        """
        return self.simulated if self.unfolded is None else self.unfolded()

    @property
    def makespan_s(self) -> float:
        """Time from 0 to the end of the last op (s)."""
        return self.simulated.makespan

    @cached_property
    def issued_s(self) -> float | None:
        """Time at which the last op was issued (s); None if issuing takes no time (no runtime)."""
        last = self.last_issuing
        return None if last is None else int(self.simulated.end[last]) / FEMTO

    @cached_property
    def last_issuing(self) -> int | None:
        """Number of the op that issued the last op; None if no op issues others."""
        issuing = np.array([label.kind in ISSUING for label in self.simulated.flat.graph.labels], np.bool_)
        ops = np.flatnonzero(issuing[self.simulated.flat.label]) if issuing.any() and len(self.simulated) else ()
        return int(ops[np.argmax(self.simulated.end[ops])]) if len(ops) else None

    @cached_property
    def issued_interval(self) -> Interval | None:
        """90 % interval of `issued_s`."""
        if self.last_issuing is None or not self.sure:
            return None
        return self.felt(lambda run: _until(run, run.last_issuing, run.issued_s or 0.0))

    def felt(self, of: Callable[[Result], Interval]) -> Interval:
        """Return an interval of this run, widened by errors of machine numbers that only whole runs depend on."""
        from hwsim.results.machine_errors import widen_by_machine_errors

        return widen_by_machine_errors(self, self.moved, of) if self.moved else of(self)

    @property
    def errors(self) -> ErrorTable:
        """Errors of predictions on this machine."""
        from hwsim.results.errors import table_of

        return table_of(None if self.built is None else self.built.scores)

    @cached_property
    def interval(self) -> Interval:
        """90 % interval of the makespan, or of kernel times if arrivals set the makespan, with the sources of uncertainty."""
        return self.felt(_interval).of(self.makespan_s)

    @cached_property
    def told(self) -> Mapping[str, FamilyResult]:
        """Results of the workload families in the run, by key (see `hwsim.families_interface`)."""
        found = self.families or read(self.simulated)
        return {key: found[key] for key in FAMILIES if key in found}

    @property
    def of_kernels(self) -> bool:
        """Whether arrivals set the makespan, so that the interval is of kernel times."""
        return any(told.of_kernels for told in self.told.values())

    @property
    def server(self) -> Server:
        """Kind of server whose arrivals set the makespan; "" without one."""
        return next((told.server for told in self.told.values() if told.server), "")

    @property
    def only_requests(self) -> bool:
        """Whether the run consists of requests without ops."""
        without = any(not told.has_ops for told in self.told.values())
        return without and all(label.kind in ("service", "start") for label in self.simulated.flat.graph.labels)

    @property
    def serving(self) -> tuple[ServiceStatistics, ...]:
        """Statistics of each served model."""
        found: tuple[ServiceStatistics, ...] = self._found("infer", ())
        return found

    @property
    def services(self) -> Services | None:
        """Results of `services:`; None without them."""
        found: Services | None = self._found("services", None)
        return found

    @property
    def trainings(self) -> tuple[TrainingResult, ...]:
        """Results of each `train:`."""
        found: tuple[TrainingResult, ...] = self._found("train", ())
        return found

    def _found(self, family: str, without: Any) -> Any:
        return self.told[family].found if family in self.told else without

    @cached_property
    def job_intervals(self) -> tuple[Interval | None, ...]:
        """90 % interval of the duration of each job, along the critical path to its last op.

        None for a served model or service, whose arrivals set its duration; None for all jobs if there are more than 32.
        """
        served = {name for told in self.told.values() for name in told.timed}
        regimes = {training.program: training.errors for training in self.simulated.flat.graph.trainings}
        if not self.sure or len(self.jobs) > MOST_JOBS:
            return (None,) * len(self.jobs)
        return tuple(
            None if job.name in served or job.last is None else self.felt(partial(_of_job, index, regimes.get(job.name, "")))
            for index, job in enumerate(self.jobs)
        )

    @property
    def ops(self) -> Ops:
        """Table of ops with op, name, kind, device, queue, program, iteration, start_s, end_s, duration_s and waiting_s."""
        from hwsim.results.ops import Ops

        return Ops(self.timeline)

    @property
    def op_count(self) -> int:
        """Number of ops on devices, including ops that a folded run represents."""
        from hwsim.results.ops import Ops

        return Ops(self.simulated).total

    @property
    def ranks(self) -> int:
        """Number of programs of the workload, including programs that a folded run represents."""
        graph = self.simulated.flat.graph
        return len(graph.alike.programs) if graph.alike is not None else len({label.program for label in graph.labels})

    def rank(self, number: int) -> tuple[OpRow, ...]:
        """Return the ops of one rank, simulated or represented by another rank.

        Raises:
            IndexError: the rank does not exist.
        """
        from hwsim.results.ops import ops_of_rank

        return ops_of_rank(self.timeline, number, self.names_of)

    @property
    def met(self) -> bool:
        """Whether every checked expectation is met."""
        return all(verdict.status != "violated" for verdict in self.verdicts)

    @property
    def fits(self) -> bool:
        """Whether the memory of every device suffices."""
        return all(device.fits for device in self.memory)

    def to_pandas(self) -> pd.DataFrame:
        """Return the ops as a pandas data frame.

        Raises:
            ModuleNotFoundError: pandas is not installed; the message says how to install it.
        """
        from hwsim.results.ops import OpRow

        try:
            frame = importlib.import_module("pandas").DataFrame
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError("to_pandas() needs pandas: pip install pandas", name="pandas") from missing
        names = [column.name for column in fields(OpRow)]
        rows = [[getattr(row, name) for name in names] for row in self.ops]
        table: pd.DataFrame = frame(rows, columns=names).set_index("op")
        return table

    def __repr__(self) -> str:
        return f"Result({self.workload!r} on {self.machine!r}: {self.makespan_s:.6g} s, {self.op_count:,} ops)"


def _interval(run: Result) -> Interval:
    """Return the interval of the makespan; if arrivals set the makespan, the interval of the average op."""
    from hwsim.results.error_weights import weights_of
    from hwsim.results.interval import interval

    regimes = {training.program: training.errors for training in run.simulated.flat.graph.trainings}
    last = max((job for job in run.jobs if job.last is not None), key=lambda job: job.end_s, default=None)
    regime = regimes.get(last.name, "") if last is not None else next(iter(regimes.values()), "")
    weights, value = weights_of(run.simulated, run.changes), run.makespan_s
    if run.of_kernels:  # only kernel times are uncertain
        took = (run.simulated.end - run.simulated.start)[run.simulated.flat.cost >= 0]
        weights, value = weights.without_stated(), total(took) / len(took) if len(took) else 0.0
    wholes = ("", regime)[len(run.jobs) < 2 :]  # most of the path to a training's end may belong to another job
    sure = max((interval(weights, value=value, whole=whole, errors=run.errors) for whole in wholes), key=lambda found: found.half)
    return sure if run.ends is None else run.ends(run.simulated, sure)


def _of_job(index: int, whole: str, run: Result) -> Interval:
    job = run.jobs[index]
    return _until(run, job.last, job.makespan_s, round(job.start_s * FEMTO), whole)


def _until(run: Result, last: int | None, value: float, since: int = 0, whole: str = "") -> Interval:
    from hwsim.results.error_weights import weights_of
    from hwsim.results.interval import interval

    return interval(weights_of(run.simulated, run.changes, last=last, since=since), value=value, whole=whole, errors=run.errors)
