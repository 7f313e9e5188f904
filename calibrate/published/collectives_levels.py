"""Collectives as flows against the same collectives step by step: differences between hwsim's fast and detailed model.

In these tables, "predicted" is the flow model and "measured" is the step model.
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
    """Return scores with idle links, with steady background traffic, and with congestion that moves along the ring."""
    idle = [
        _pair(f"{name}, {n} ranks, {size} MiB", n, size * MIB, name)
        for name in ALGORITHMS
        for n in (3, 8, 12)
        for size in (1, 64)
    ]
    tree = [_pair(f"double-tree, {n} ranks, {size} MiB", n, size * MIB, "double-tree") for n in (4, 8, 12) for size in (1, 64)]
    steady = [
        _pair(f"{n} ranks, background copy of {part:g} x 16 MiB", n, 16 * MIB, "ring", copy=part * 16 * MIB)
        for n in (4, 8, 16)
        for part in (0.5, 1, 20)
    ]
    half, tenth = (
        [
            _pair(f"{n} ranks, each link slow for {part:g}/{n} of the undisturbed time", n, 64 * MIB, "ring", slow=(part, speed))
            for n in (4, 8, 16)
            for part in (0.5, 1, 2)
        ]
        for speed in ("50 %", "10 %")
    )
    pieces = [_pair(f"{n} ranks, sends in 8 chunks", n, 64 * MIB, "ring", slow=(1, "50 %"), chunks=8) for n in (4, 8, 16)]
    return (
        _score("flow model against step model, idle links, from 1 MiB", idle, 0.02),
        _score(
            "flow model against step model, double binary tree",
            tree,
            0.02,
        ),
        _score(
            "ring with steady background traffic on one link",
            steady,
            0.10,
        ),
        _score("ring, each link in turn at half speed", half, 0.15),
        _score(
            "ring, each link in turn at a tenth of its speed",
            tenth,
            0.15,
            reached=0.241,
        ),
        _score(
            "ring, each link in turn at half speed, sends in 8 chunks",
            pieces,
            0.15,
            reached=0.356,
        ),
    )


def _pair(
    said: str, n: int, size: float, algorithm: str, *, copy: float = 0.0, slow: tuple[float, str] | None = None, chunks: int = 1
) -> Miss:
    """Return the end of a collective in both models."""
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
        mine = [index for index, number in enumerate(timeline.flat.label.tolist()) if labels[number].name.startswith("allreduce")]
        ends.append(float(timeline.end[mine].max()) / 1e15)
    return Miss(said, ends[0], ends[1], "flow, step")


def _score(name: str, rows: Sequence[Miss], bound: float, *, reached: float | None = None) -> Score:
    return scored(name, rows, bound, "not fitted", metric="largest relative error", reached=reached)
