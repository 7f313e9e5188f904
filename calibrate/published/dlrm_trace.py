"""One training step of DLRM on eight V100, recorded on every rank: what its all-reduces cost, and how long ranks waited in them.

A kernel of NCCL begins when its rank comes and ends when all are done, so that its time is waiting and transfer; the rank
that comes last shows what the collective itself takes.  The ranks' clocks agree: their kernels end within a few us.

Fitted (machines/parts/nccl/dgx1-v100.yaml): the start, to the 448 B, and the step of LL128, to the 1.58 MB.  The 0.9 MB
between them was not; nothing was fitted to how long anybody waited.

Source of the trace: facebookresearch/param, dlrm_kineto: 8 x V100-SXM2-32GB, PyTorch, NCCL, 2023.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from hwsim import api
from hwsim.communication.plan import RankGroup
from hwsim.communication.selection import hardware
from hwsim.communication.tuning import candidates
from published.score import Half, Miss, Score, scored

RANKS: Final = 8
WIDTH: Final = 4  # bytes of a number
HELD_OUT: Final = 226960 * WIDTH
MACHINE: Final[Mapping[str, Any]] = {
    "hwsim": "machine/1",
    "parts": {"node": {"kind": "machine", "use": "p3dn.24xlarge", "collectives": {"use": "dgx1-v100"}}},
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One all-reduce: its bytes, and when the kernel of each rank began and ended, in us."""

    size: int
    begins: tuple[float, ...]
    ends: tuple[float, ...]

    @property
    def cost(self) -> float:
        """us of the rank that came last: the shortest."""
        return min(self.durations)

    @property
    def durations(self) -> tuple[float, ...]:
        """us of each rank."""
        return tuple(end - begin for begin, end in zip(self.begins, self.ends, strict=True))


def recorded(data: Path) -> tuple[Recorded, ...]:
    """The all-reduces of the trace, in the order of the step."""
    ranks = [_of_rank(data / "traces" / "gpu" / f"dlrm_V100x8_rank{rank}.json.gz") for rank in range(RANKS)]
    found = []
    for together in zip(*ranks, strict=True):
        sizes = {size for size, _, _ in together}
        if len(sizes) != 1:
            raise ValueError(f"the ranks do not agree on what they reduce: {sorted(sizes)} bytes")
        found.append(Recorded(together[0][0], tuple(each[1] for each in together), tuple(each[2] for each in together)))
    return tuple(found)


def _of_rank(path: Path) -> list[tuple[int, float, float]]:
    """(bytes, begin, end) of each all-reduce of one rank: the calls and the kernels come in the same order."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    calls = [event for event in events if event.get("cat") == "user_annotation" and event["name"] == "nccl:all_reduce"]
    kernels = [each for each in events if each.get("cat") == "kernel" and each["name"].startswith("ncclKernel_AllReduce")]
    return [
        (WIDTH * int(call["args"]["Input Dims"][0][0]), float(kernel["ts"]), float(kernel["ts"] + kernel["dur"]))
        for call, kernel in zip(_in_time(calls), _in_time(kernels), strict=True)
    ]


def _in_time(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(events, key=lambda each: each["ts"])


def simulated(size: float, arrivals: Sequence[float]) -> tuple[float, ...]:
    """us that the kernel of each rank takes when the ranks come at these times (us)."""
    first = min(arrivals)
    # a rank's own number: max(0, 1 - (rank - r)^2) is 1 for it and 0 for all others
    late = " + ".join(
        f"{when - first!r} us * max(0, 1 - ($rank - {rank}) * ($rank - {rank}))" for rank, when in enumerate(arrivals)
    )
    reduced = {"allreduce": {"among": "gpu*", "bytes": f"{size!r} B", "reads": "gradients"}}
    program = [{"busy": {"name": "before", "device": "$self", "time": late, "writes": "gradients"}}, reduced]
    workload = {"hwsim": "workload/1", "program": {"each": "gpu*", "do": program}}
    timeline = api.simulate(dict(MACHINE), workload).timeline
    labels = timeline.flat.graph.labels
    came, left = {}, {}
    for at, number in enumerate(timeline.flat.label.tolist()):
        label = labels[number]
        if label.kind == "arrive":
            came[label.device] = timeline.start[at]
        elif label.kind == "allreduce":
            left[label.device] = timeline.end[at]
    return tuple((float(left[name]) - float(came[name])) / 1e9 for name in sorted(came))


@cache
def alone(size: int) -> float:
    """us of the collective when all come at once."""
    return max(simulated(size, (0.0,) * RANKS))


def by_tables(size: int) -> float:
    """us as NCCL's own tables have it, nothing fitted."""
    machine = api.load_machine(dict(MACHINE))
    gpus, group = machine.select("gpu*"), RankGroup(RANKS)
    return candidates(hardware(machine, gpus, group), "all-reduce", group, size)[0].seconds(size) * 1e6


def scores(data: Path) -> tuple[Score, ...]:
    """What the all-reduces cost, with and without a fit, and the time of each rank's kernel."""
    found = recorded(data)
    costs = [Miss(_said(each), alone(each.size), each.cost, "minimum over the ranks") for each in found]
    tables = [Miss(_said(each), by_tables(each.size), each.cost, "minimum over the ranks") for each in found]
    unseen = [miss for miss, each in zip(costs, found, strict=True) if each.size == HELD_OUT]
    waits = [miss for each in found for miss in _ranks(each)]
    name = "DLRM on 8 V100"
    return (
        _score(f"{name}: transfer time of the 0.9 MB all-reduce", unseen, "interpolated"),
        _score(f"{name}: transfer times of three all-reduces, two of them fitted", costs, "partly fitted"),
        _score(f"{name}: transfer times from NCCL's own tables", tables, "not fitted"),
        _score(f"{name}: NCCL kernel time of each rank, including waiting", waits, "partly fitted"),
    )


def _ranks(each: Recorded) -> list[Miss]:
    """The kernel of every rank."""
    last = max(each.begins)
    return [
        Miss(f"{_said(each)}, rank {rank}", predicted, measured, f"arrived {last - came:.0f} us before the last rank")
        for rank, (predicted, measured, came) in enumerate(
            zip(simulated(each.size, each.begins), each.durations, each.begins, strict=True)
        )
    ]


def _said(each: Recorded) -> str:
    return f"{each.size:,} B"


def _score(name: str, rows: Sequence[Miss], half: Half) -> Score:
    return scored(name, rows, 0.25, half, metric="largest relative error")
