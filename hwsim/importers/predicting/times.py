"""New times of the ops of a replay while they are found, their sums by operator, and the formats that products are computed in.

PyTorch lets convolutions of fp32 run in TF32 where a GPU has it (`torch.backends.cudnn.allow_tf32`), and since 1.12 products do
not (`torch.backends.cuda.matmul.allow_tf32`). Names of kernels tell what a recorded run did, if its GPU could.

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
from hwsim.importers.lowering import Lowered, Lowering
from hwsim.importers.placing import Placing, placed
from hwsim.importers.recording import Facts, Ints, Recording
from hwsim.importers.replay import Replay
from hwsim.machine import Machine
from hwsim.origins import Doubt
from hwsim.records import dataclass
from hwsim.ticks import FEMTO

GAP: Final = 1e-6  # seconds between two kernels of a stream, where a recording shows longer ones
How = Literal["predicted", "kept"]


@dataclass(frozen=True, slots=True)
class Row:
    """The time of one operator in all ranks.

    Args:
        kind: kind of work. name: name of the operator. how: whether its time was predicted.
        count: calls; recorded, time: seconds in all, as recorded and on the machine.
        why: where the recorded time is kept, the reason.
        doubts: errors of the predicted seconds.
    """

    kind: str
    name: str
    how: How
    count: int
    recorded: float
    time: float
    why: str = ""
    doubts: tuple[Doubt, ...] = ()


@dataclass(slots=True)
class Total:
    """Calls of an operator and their seconds, as recorded and on the machine."""

    count: int = 0
    recorded: float = 0.0
    time: float = 0.0
    doubts: dict[tuple[Any, ...], Doubt] = field(default_factory=dict)

    def add(self, recorded: float, time: float, doubts: tuple[Doubt, ...] = ()) -> None:
        """Add a call."""
        self.count, self.recorded, self.time = self.count + 1, self.recorded + recorded, self.time + time
        for doubt in doubts:
            before = self.doubts.get(doubt[:3])
            self.doubts[doubt[:3]] = doubt if before is None else doubt._replace(seconds=before.seconds + doubt.seconds)


class Times:
    """Times of the ops of a replay on a machine.

    Args:
        time, cost: a column with an entry per op, changed in place. sums: by kind, operator, how and why.
        assumed: sentences, in order.
    """

    def __init__(self, replay: Replay, machine: Machine) -> None:
        self.replay, self.machine = replay, machine
        self.lowering = Lowering(machine)
        self.placing: Placing = placed(replay.recording, machine)
        self.formats: Formats = formats_of(replay.recording)
        self.body = replay.graph.blocks[0]
        self.time: Ints = self.body.time.copy()
        self.cost: Ints = self.body.cost.copy()
        self.costs: dict[Cost, int] = {}
        self.sums: dict[tuple[str, str, How, str], Total] = {}
        self.assumed = dict.fromkeys(replay.meetings.notes)
        self.meaning: Callable[[str, Facts | None], Meaning] = cache(meaning)

    def graph(self) -> OpGraph:
        """The replay's graph with the times found."""
        body = replace(self.body, time=self.time, cost=self.cost)
        return replace(self.replay.graph, blocks=(body,), costs=tuple(self.costs))

    def take(self, op: int, seconds: float) -> None:
        """Let an op take a time; one of hours needs a column of Python integers.

        Raises:
            TooLong: it is more than hwsim counts.
        """
        took = ticks.femtoseconds(seconds)
        if took > ticks.LARGEST:
            self.time = ticks.widened(self.time)
        self.time[op] = took

    def rows(self) -> tuple[Row, ...]:
        """Sums by operator, the longest first."""
        totals = [
            Row(kind, name, how, total.count, total.recorded, total.time, why, tuple(total.doubts.values()))
            for (kind, name, how, why), total in self.sums.items()
        ]
        return tuple(sorted(totals, key=lambda row: (-row.recorded, row.name)))

    def sum(self, kind: str, name: str, how: How, why: str) -> Total:
        """The sum of an operator."""
        return self.sums.setdefault((kind, name, how, why), Total())

    def derived(self, name: str, lowered: Lowered, seconds: float, device: str, doubts: tuple[Doubt, ...]) -> int:
        """The number of a cost that has no demand, and says how the time came about and how sure it is."""
        longest = max(lowered.lines, key=lambda line: line.seconds, default=None)
        inputs = longest.inputs if longest is not None else ()
        formula = longest.formula if longest is not None else "its own time"
        line = Term(plain(name), formula, inputs, seconds, f"{device}.compute", kind="kernels", doubts=doubts)
        cost = Cost(Demand(), why=(line,))
        return self.costs.setdefault(cost, len(self.costs))

    def put(
        self, op: int, kind: str, name: str, lowered: Lowered, seconds: float, device: str, doubts: tuple[Doubt, ...]
    ) -> None:
        """An op takes a time of its own."""
        self.sum(kind, name, "predicted", "").add(self.body.time[op] / FEMTO, seconds, doubts)
        self.take(op, seconds)
        self.cost[op] = self.derived(name, lowered, seconds, device, doubts)

    def keep(self, op: int, kind: str, name: str, why: str, calls: int = 1) -> None:
        """An op keeps its recorded time."""
        seconds = float(self.body.time[op]) / FEMTO
        found = self.sum(kind, name, "kept", why)
        found.count, found.recorded, found.time = found.count + calls, found.recorded + seconds, found.time + seconds


_COULD: Final = re.compile(r"ampere|sm8\d|sm9\d|sm10\d|cutlass_80|hopper|blackwell|tf32|s1688")
_TENSOR: Final = re.compile(r"tf32|s1688(?!.*(?:f16|bf16|h1688))")
_CONVOLVES: Final = re.compile(r"fprop|dgrad|wgrad|cudnn|nchw|nhwc|conv")


@dataclass(frozen=True, slots=True)
class Formats:
    """Whether fp32 is computed in TF32, where a GPU can."""

    convolutions: bool = True
    products: bool = False

    def applied(self, statement: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """The statement in the format that it is computed in."""
        kind, keys = next(iter(statement.items()))
        if keys.get("dtype") != "fp32":
            return statement
        if (kind == "convolution" and self.convolutions) or (kind in ("matmul", "rnn") and self.products):
            return {kind: {**keys, "dtype": "tf32"}}
        return statement


def formats_of(recording: Recording) -> Formats:
    """By the names of kernels, if the recorded GPU could choose; else as PyTorch does by default."""
    names = {name for rank in recording.ranks for name in rank.names}
    if not any(_COULD.search(name) for name in names):
        return Formats()
    tensor = [name for name in names if _TENSOR.search(name)]
    convolving = [name for name in tensor if _CONVOLVES.search(name)]
    others = [name for name in tensor if name not in convolving and "gemm" in name]
    return Formats(bool(convolving) or not any("conv" in name for name in names), bool(others))
