"""Collect predicted times of ops and their sums by operator, and find whether fp32 is computed in TF32.

By default, PyTorch computes fp32 convolutions in TF32 on GPUs that have it (`torch.backends.cudnn.allow_tf32`), and since
version 1.12 fp32 matmuls not (`torch.backends.cuda.matmul.allow_tf32`). Kernel names show the choice of a recorded run, if its
GPU had TF32.

**Source**: PyTorch, "CUDA semantics", section "TensorFloat-32 on Ampere (and later) devices".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any, Final, Literal

from hwsim import ticks
from hwsim.demand import Cost, Demand, Term
from hwsim.graph.opgraph import OpGraph
from hwsim.importers.aten import Meaning, meaning, plain
from hwsim.importers.lowering import LoweredStatement, Lowering
from hwsim.importers.rank_placement import RankPlacement, placed
from hwsim.importers.recording import Ints, Recording, SliceFacts
from hwsim.importers.replay import RecordingReplay
from hwsim.machine import Machine
from hwsim.origins import UncertaintySource
from hwsim.records import dataclass
from hwsim.ticks import FEMTO

GAP: Final = 1e-6  # s: largest gap between two kernels of a stream that is subtracted from kernel starts
How = Literal["predicted", "kept"]


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """The time of one operator, summed over all ranks.

    Args:
        kind: kind of work.
        name: name of the operator.
        how: whether its time is predicted or keeps its recorded value.
        count: number of calls.
        recorded: recorded time (s).
        time: time on the machine (s).
        why: reason why the recorded time is kept.
        doubts: errors of the predicted time.
    """

    kind: str
    name: str
    how: How
    count: int
    recorded: float
    time: float
    why: str = ""
    doubts: tuple[UncertaintySource, ...] = ()


@dataclass(slots=True)
class Total:
    """A running sum of the calls of an operator and their times (s), recorded and on the machine."""

    count: int = 0
    recorded: float = 0.0
    time: float = 0.0
    doubts: dict[tuple[Any, ...], UncertaintySource] = field(default_factory=dict)

    def add(self, recorded: float, time: float, doubts: tuple[UncertaintySource, ...] = ()) -> None:
        """Add a call."""
        self.count, self.recorded, self.time = self.count + 1, self.recorded + recorded, self.time + time
        for doubt in doubts:
            before = self.doubts.get(doubt[:3])
            self.doubts[doubt[:3]] = doubt if before is None else doubt._replace(seconds=before.seconds + doubt.seconds)


class PredictedTimes:
    """A collector of the times of the ops of a replay on a machine.

    Attributes:
        time: time of each op (fs).
        cost: index of the cost of each op.
        sums: sums by kind, operator, how and why.
        assumed: assumptions, in sentences.
    """

    def __init__(self, replay: RecordingReplay, machine: Machine) -> None:
        self.replay, self.machine = replay, machine
        self.lowering = Lowering(machine)
        self.placing: RankPlacement = placed(replay.recording, machine)
        self.formats: Formats = formats_of(replay.recording)
        self.body = replay.graph.blocks[0]
        self.time: Ints = self.body.time.copy()
        self.cost: Ints = self.body.cost.copy()
        self.costs: dict[Cost, int] = {}
        self.sums: dict[tuple[str, str, How, str], Total] = {}
        self.assumed = dict.fromkeys(replay.meetings.notes)
        self.meaning: Callable[[str, SliceFacts | None], Meaning] = cache(meaning)

    def graph(self) -> OpGraph:
        """Return the op graph of the replay with the collected times."""
        body = replace(self.body, time=self.time, cost=self.cost)
        return replace(self.replay.graph, blocks=(body,), costs=tuple(self.costs))

    def take(self, op: int, seconds: float) -> None:
        """Set the time of an op. Times of hours need a column of Python integers.

        Raises:
            TooLong: the time exceeds the limit of hwsim.
        """
        took = ticks.femtoseconds(seconds)
        if took > ticks.LARGEST:
            self.time = ticks.widened(self.time)
        self.time[op] = took

    def rows(self) -> tuple[OperatorTime, ...]:
        """Return the sums by operator, longest first."""
        totals = [
            OperatorTime(kind, name, how, total.count, total.recorded, total.time, why, tuple(total.doubts.values()))
            for (kind, name, how, why), total in self.sums.items()
        ]
        return tuple(sorted(totals, key=lambda row: (-row.recorded, row.name)))

    def sum(self, kind: str, name: str, how: How, why: str) -> Total:
        """Return the running sum of an operator."""
        return self.sums.setdefault((kind, name, how, why), Total())

    def derived(
        self, name: str, lowered: LoweredStatement, seconds: float, device: str, doubts: tuple[UncertaintySource, ...]
    ) -> int:
        """Return the index of a cost without demand that has the derivation and errors of a time."""
        longest = max(lowered.lines, key=lambda line: line.seconds, default=None)
        inputs = longest.inputs if longest is not None else ()
        formula = longest.formula if longest is not None else "its own time"
        line = Term(plain(name), formula, inputs, seconds, f"{device}.compute", kind="kernels", doubts=doubts)
        cost = Cost(Demand(), why=(line,))
        return self.costs.setdefault(cost, len(self.costs))

    def put(
        self,
        op: int,
        kind: str,
        name: str,
        lowered: LoweredStatement,
        seconds: float,
        device: str,
        doubts: tuple[UncertaintySource, ...],
    ) -> None:
        """Set the predicted time of an op and add it to its sum."""
        self.sum(kind, name, "predicted", "").add(self.body.time[op] / FEMTO, seconds, doubts)
        self.take(op, seconds)
        self.cost[op] = self.derived(name, lowered, seconds, device, doubts)

    def keep(self, op: int, kind: str, name: str, why: str, calls: int = 1) -> None:
        """Keep the recorded time of an op and add it to its sum."""
        seconds = float(self.body.time[op]) / FEMTO
        found = self.sum(kind, name, "kept", why)
        found.count, found.recorded, found.time = found.count + calls, found.recorded + seconds, found.time + seconds


_COULD: Final = re.compile(r"ampere|sm8\d|sm9\d|sm10\d|cutlass_80|hopper|blackwell|tf32|s1688")
_TENSOR: Final = re.compile(r"tf32|s1688(?!.*(?:f16|bf16|h1688))")
_CONVOLVES: Final = re.compile(r"fprop|dgrad|wgrad|cudnn|nchw|nhwc|conv")


@dataclass(frozen=True, slots=True)
class Formats:
    """The use of TF32 for fp32, on GPUs that have it."""

    convolutions: bool = True
    products: bool = False

    def applied(self, statement: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Return the statement with the data type in which it is computed."""
        kind, keys = next(iter(statement.items()))
        if keys.get("dtype") != "fp32":
            return statement
        if (kind == "convolution" and self.convolutions) or (kind in ("matmul", "rnn") and self.products):
            return {kind: {**keys, "dtype": "tf32"}}
        return statement


def formats_of(recording: Recording) -> Formats:
    """Find the use of TF32 from kernel names; the default of PyTorch if the recorded GPU has no TF32."""
    names = {name for rank in recording.ranks for name in rank.names}
    if not any(_COULD.search(name) for name in names):
        return Formats()
    tensor = [name for name in names if _TENSOR.search(name)]
    convolving = [name for name in tensor if _CONVOLVES.search(name)]
    others = [name for name in tensor if name not in convolving and "gemm" in name]
    return Formats(bool(convolving) or not any("conv" in name for name in names), bool(others))
