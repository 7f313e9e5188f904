"""What a run found, as data: reports read it, nothing here formats it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import TYPE_CHECKING

from hwsim.records import dataclass
from hwsim.results.timeline import Timeline

if TYPE_CHECKING:
    import pandas as pd

    from hwsim.disturbance import Disturbance
    from hwsim.graph.opgraph import Change
    from hwsim.results.again import Again
    from hwsim.results.jobs import JobSpan
    from hwsim.results.memory import DeviceMemory
    from hwsim.results.ops import NamesOf, OpRow, Ops
    from hwsim.results.requests import LatencyCurve, RequestStatistics
    from hwsim.results.serving import ServiceStatistics
    from hwsim.results.steady import Steady
    from hwsim.results.training import Training
    from hwsim.results.usage import Usage
    from hwsim.results.verdict import Verdict
    from hwsim.spec import Warning


@dataclass(frozen=True)
class Result:
    """A workload simulated on a machine.

    machine, workload: their names.  usage: one row per capacity.  verdicts: the expectations
    that were checked or skipped.  settings: what `set` changed.  devices: name -> kind.
    memory: of every device that holds values of known size.
    requests: of every device that was simulated request by request; curves: its latency against load, if asked for.
    events: what went wrong meanwhile; changes: what that made of the capacities, and when.
    names_of: of a folded run, what the labels and queues of the first rank of its class are called at another rank.
    steady: how much of a long loop was simulated, if that was asked for.
    serving: what became of the requests of every service.
    again: how to prepare and simulate it again; None where its machine or workload was given as a value, not as a file.
    """

    machine: str
    workload: str
    timeline: Timeline
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
    changes: tuple[Change, ...] = ()
    names_of: NamesOf | None = field(default=None, repr=False, compare=False)
    serving: tuple[ServiceStatistics, ...] = ()
    steady: Steady | None = None
    again: Again | None = field(default=None, repr=False, compare=False)

    @property
    def makespan_s(self) -> float:
        """Seconds from the start to the end of the last op."""
        return self.timeline.makespan

    @cached_property
    def issued_s(self) -> float | None:
        """Seconds until the programs had issued their last op; None where issuing costs nothing."""
        from hwsim.results.front_end import issued_s

        return issued_s(self.timeline)

    @cached_property
    def trainings(self) -> tuple[Training, ...]:
        """What the steps of every `train:` came to."""
        from hwsim.results.training import trainings

        return trainings(self.timeline)

    @property
    def ops(self) -> Ops:
        """Rows: op, name, kind, device, queue, program, iteration, start_s, end_s, duration_s, waiting_s."""
        from hwsim.results.ops import Ops

        return Ops(self.timeline)

    @property
    def ranks(self) -> int:
        """How many programs the workload has, those of a folded run included."""
        graph = self.timeline.flat.graph
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
        return f"Result({self.workload!r} on {self.machine!r}: {self.makespan_s:.6g} s, {len(self.timeline)} ops)"
