"""A collective as flows beside the same step by step: how far the quick level is from the slow one, and where.

In these tables "predicted" is the time of the flows and "measured" that of the single sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hwsim import api
from published.score import Miss, Score, scored

MIB: Final = 1 << 20
_PORT: Final = 12.5e9  # B/s of a link of scale/star
ALGORITHMS: Final = (
    "ring",
    "direct",
    "halving-doubling",
    "recursive-doubling",
    "binomial-tree",
    "ps-gpu0",
    "ps-sharded",
    "torus",
    "hierarchical",
)


def scores(data: Path) -> tuple[Score, ...]:  # noqa: ARG001 (two levels of the same model)
    """Idle machines, steady traffic beside, and congestion that moves along the ring."""
    idle = [
        _pair(f"{name}, {n} ranks, {size} MiB", n, size * MIB, name)
        for name in ALGORITHMS
        for n in (3, 8, 12)
        for size in (1, 64)
    ]
    tree = [_pair(f"double-tree, {n} ranks, {size} MiB", n, size * MIB, "double-tree") for n in (4, 8, 12) for size in (1, 64)]
    steady = [
        _pair(f"{n} ranks, a copy of {part:g} x 16 MiB beside", n, 16 * MIB, "ring", copy=part * 16 * MIB)
        for n in (4, 8, 16)
        for part in (0.5, 1, 20)
    ]
    half, tenth = (
        [
            _pair(f"{n} ranks, each link for {part:g} of its n-th", n, 64 * MIB, "ring", slow=(part, speed))
            for n in (4, 8, 16)
            for part in (0.5, 1, 2)
        ]
        for speed in ("50 %", "10 %")
    )
    pieces = [_pair(f"{n} ranks, sends in 8 pieces", n, 64 * MIB, "ring", slow=(1, "50 %"), chunks=8) for n in (4, 8, 16)]
    return (
        _score("flows beside steps, idle, from 1 MiB", idle, 0.02, "Steps in which all ranks do the same: no difference."),
        _score(
            "flows beside steps, double tree",
            tree,
            0.02,
            "Beyond 64 ranks, not looked at here, flows count the steps that fill and empty the tree as full ones.",
        ),
        _score(
            "ring beside steady traffic on one link",
            steady,
            0.10,
            "Too fast where the traffic ends before the collective: the flow spends all its latency first.",
        ),
        _score("ring while one link after the other is at half speed", half, 0.15, "Never too fast by more than 0.2 %."),
        _score(
            "the same at a tenth of the speed",
            tenth,
            0.15,
            "A slow link holds back all of the flow, but only the sends that cross it then: too slow, never too fast.",
            reached=0.241,
        ),
        _score(
            "half speed again, beside sends in 8 pieces",
            pieces,
            0.15,
            "Pieces let ranks run ahead of each other by a step: they wait for a slow link less than the flow does.",
            reached=0.356,
        ),
    )


def _pair(
    said: str, n: int, size: float, algorithm: str, *, copy: float = 0.0, slow: tuple[float, str] | None = None, chunks: int = 1
) -> Miss:
    """When the collective ends, as flows and step by step."""
    beside = [{"copy": {"from": "gpu0", "to": "gpu1", "bytes": f"{copy!r} B", "queue": "beside"}}] if copy else []
    events = []
    if slow is not None:
        part, speed = slow
        each = 2 * (n - 1) / n * size / _PORT / n * part
        events = [
            {"at": f"{rank * each!r} s", "link": "ports", "of": f"gpu{rank}", "speed": speed, "for": f"{each!r} s"}
            for rank in range(n)
        ]
    ends = []
    for keys in ({"steps": "steady"}, {"steps": "explicit", "chunks": chunks}):
        reduced = {"allreduce": {"among": "gpu*", "bytes": f"{size!r} B", "algorithm": algorithm, **keys}}
        workload: dict[str, Any] = {"hwsim": "workload/1", "program": [reduced, *beside], "events": events}
        timeline = api.simulate("scale/star", workload, set={"machine.let.ranks": n}).timeline
        labels = timeline.flat.graph.labels
        mine = [at for at, number in enumerate(timeline.flat.label.tolist()) if labels[number].name.startswith("allreduce")]
        ends.append(float(timeline.end[mine].max()) / 1e15)
    return Miss(said, ends[0], ends[1], "flows, steps")


def _score(name: str, rows: Sequence[Miss], bound: float, notes: str, *, reached: float | None = None) -> Score:
    return scored(name, rows, bound, "not fitted", metric="worst |error|", reached=reached, notes=notes)
