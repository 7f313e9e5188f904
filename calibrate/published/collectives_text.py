"""All-reduce times of *Dive into Deep Learning*, chapter 13.7: hwsim's workloads against the book's numbers and formula.

Source: 160 MB among four GPUs on PCIe of 16 GB/s; among eight GPUs on two NVLink rings of 18 GB/s; and among m workers with n
parameter servers, where the time is proportional to m/n.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hwsim import api
from published.score import Miss, Score, scored

_PORT: Final = 1.25e9  # B/s of a worker or server in d2l-ps-cluster
_BYTES: Final = 160e6
_ONE_WAY: Final = _BYTES / _PORT


def scores(data: Path) -> tuple[Score, ...]:  # noqa: ARG001 (the numbers are the text's)
    """Return scores of four GPUs, two rings, and m workers with n servers."""
    four = [
        Miss(name, _seconds("d2l-4gpu-pcie", "d2l/allreduce-160mb", algorithm=name), said, "d2l-4gpu-pcie", reason)
        for name, said, reason in (
            ("ps-gpu0", 0.060, "GPU 0 receives three gradients and sends three sums"),
            ("ps-cpu", 0.080, "one uplink carries four gradients and four sums"),
            ("ps-sharded", 0.015, "each GPU sums a quarter, in both directions at once"),
        )
    ]
    rings = [
        Miss(
            "two rings",
            _seconds("d2l-8gpu-nvlink", "d2l/two-nvlink-rings"),
            2 * 7 / 8 * _BYTES / 54e9,
            "d2l-8gpu-nvlink",
            "the book rounds (n - 1)/n to 1 and states 5.93 ms, 8/7 of this",
        )
    ]
    servers = [
        Miss(
            f"{m} workers, {n} servers",
            _rack(m, n),
            2 * max(1.0, m / n) * _ONE_WAY,
            "d2l-ps-cluster",
            "formula: 2 max(1, m/n) S/B",
        )
        for m, n in ((4, 1), (8, 1), (16, 1), (8, 2), (8, 4), (8, 8), (16, 16), (8, 16))
    ]
    real = {
        way: 1e3 * _seconds("p3.16xlarge", "d2l/two-nvlink-rings", algorithm=name)
        for way, name in (("one way", "rings"), ("both ways", "rings-both-ways"))
    }
    beside = f"With the 25 GB/s links of p3.16xlarge: {real['one way']:.2f} ms, or {real['both ways']:.2f} ms in both directions."
    return (
        _score("four GPUs behind a PCIe switch, 160 MB", four, 0.01),
        _score("eight GPUs, two NVLink rings, 160 MB", rings, 0.001, beside),
        _score("parameter servers, m workers and n servers", servers, 0.001),
    )


def _seconds(machine: str, workload: str, **changes: Any) -> float:
    return api.simulate(machine, workload, set=changes).makespan_s


def _rack(workers: int, servers: int) -> float:
    return _seconds("d2l-ps-cluster", "d2l/ps-scaling", **{"machine.let.workers": workers, "machine.let.servers": servers})


def _score(name: str, rows: Sequence[Miss], bound: float, notes: str = "") -> Score:
    return scored(name, rows, bound, "not fitted", metric="largest relative error", shown=len(rows), notes=notes)
