"""One DLRM training step on eight V100, recorded on every rank: transfer time of its all-reduces, and waiting in them.

An NCCL kernel starts when its rank arrives and ends when all ranks are done, so its time contains waiting and transfer. The
kernel of the last rank to arrive shows the transfer time. The clocks of the ranks agree: their kernels end within a few us.

Fitted (machines/parts/nccl/dgx1-v100.yaml): the start latency to the 448 B, and the LL128 step to the 1.58 MB. The all-reduce
of 0.9 MB and all waiting times were not used for fitting.

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
WIDTH: Final = 4  # B of a value
HELD_OUT: Final = 226960 * WIDTH
MACHINE: Final[Mapping[str, Any]] = {
    "hwsim": "machine/1",
    "parts": {"node": {"kind": "machine", "use": "p3dn.24xlarge", "collectives": {"use": "dgx1-v100"}}},
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One all-reduce: its size in bytes, and start and end of each rank's kernel, in us."""

    size: int
    begins: tuple[float, ...]
    ends: tuple[float, ...]

    @property
    def cost(self) -> float:
        """Kernel time of the last rank to arrive, which is the shortest, in us."""
        return min(self.durations)

    @property
    def durations(self) -> tuple[float, ...]:
        """Kernel time of each rank, in us."""
        return tuple(end - begin for begin, end in zip(self.begins, self.ends, strict=True))


def recorded(data: Path) -> tuple[Recorded, ...]:
    """Return the all-reduces of the trace, in order."""
    ranks = [_of_rank(data / "traces" / "gpu" / f"dlrm_V100x8_rank{rank}.json.gz") for rank in range(RANKS)]
    found = []
    for together in zip(*ranks, strict=True):
        sizes = {size for size, _, _ in together}
        if len(sizes) != 1:
            raise ValueError(f"the ranks do not agree on what they reduce: {sorted(sizes)} bytes")
        found.append(Recorded(together[0][0], tuple(call[1] for call in together), tuple(call[2] for call in together)))
    return tuple(found)


def _of_rank(path: Path) -> list[tuple[int, float, float]]:
    """Return (bytes, start, end) of each all-reduce of one rank; calls and kernels have the same order."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    calls = [event for event in events if event.get("cat") == "user_annotation" and event["name"] == "nccl:all_reduce"]
    kernels = [span for span in events if span.get("cat") == "kernel" and span["name"].startswith("ncclKernel_AllReduce")]
    return [
        (WIDTH * int(call["args"]["Input Dims"][0][0]), float(kernel["ts"]), float(kernel["ts"] + kernel["dur"]))
        for call, kernel in zip(_in_time(calls), _in_time(kernels), strict=True)
    ]


def _in_time(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(events, key=lambda each: each["ts"])


def simulated(size: float, arrivals: Sequence[float]) -> tuple[float, ...]:
    """Return the simulated kernel time of each rank, in us, for these arrival times (us)."""
    first = min(arrivals)
    # max(0, 1 - (rank - r)^2) is 1 for rank r and 0 for all others
    late = " + ".join(
        f"{when - first!r} us * max(0, 1 - ($rank - {rank}) * ($rank - {rank}))" for rank, when in enumerate(arrivals)
    )
    reduced = {"allreduce": {"among": "gpu*", "bytes": f"{size!r} B", "reads": "gradients"}}
    program = [{"busy": {"name": "before", "device": "$self", "time": late, "writes": "gradients"}}, reduced]
    workload = {"hwsim": "workload/1", "program": {"each": "gpu*", "do": program}}
    timeline = api.simulate(dict(MACHINE), workload).timeline
    labels = timeline.flat.graph.labels
    came, left = {}, {}
    for index, number in enumerate(timeline.flat.label.tolist()):
        label = labels[number]
        if label.kind == "arrive":
            came[label.device] = timeline.start[index]
        elif label.kind == "allreduce":
            left[label.device] = timeline.end[index]
    return tuple((float(left[name]) - float(came[name])) / 1e9 for name in sorted(came))


@cache
def alone(size: int) -> float:
    """Return the time of the collective if all ranks arrive together, in us."""
    return max(simulated(size, (0.0,) * RANKS))


def by_tables(size: int) -> float:
    """Return the time by NCCL's own tables, without fitted constants, in us."""
    machine = api.load_machine(dict(MACHINE))
    gpus, group = machine.select("gpu*"), RankGroup(RANKS)
    return candidates(hardware(machine, gpus, group), "all-reduce", group, size)[0].seconds(size) * 1e6


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of transfer times, with and without a fit, and of each rank's kernel time."""
    found = recorded(data)
    costs = [Miss(_said(call), alone(call.size), call.cost, "minimum over the ranks") for call in found]
    tables = [Miss(_said(call), by_tables(call.size), call.cost, "minimum over the ranks") for call in found]
    unseen = [miss for miss, call in zip(costs, found, strict=True) if call.size == HELD_OUT]
    waits = [miss for call in found for miss in _ranks(call)]
    name = "DLRM on 8 V100"
    return (
        _score(f"{name}: transfer time of the 0.9 MB all-reduce", unseen, "interpolated"),
        _score(f"{name}: transfer times of three all-reduces, two of them fitted", costs, "partly fitted"),
        _score(f"{name}: transfer times from NCCL's own tables", tables, "not fitted"),
        _score(f"{name}: NCCL kernel time of each rank, including waiting", waits, "partly fitted"),
    )


def _ranks(each: Recorded) -> list[Miss]:
    """Return the kernel time of every rank."""
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
