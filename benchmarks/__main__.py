"""Run the benchmarks and print one table:  python -m benchmarks [NAME...]"""

from __future__ import annotations

import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks import fair, lowering, replay, startup
from benchmarks.raw import timeouts_per_second

ROUNDS = 5
Row = tuple[str, str, str]


def main() -> None:
    """Print what is measured, the figure, and the figure it is held against."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    print(f"{platform.machine()}, Python {platform.python_version()}; medians of {ROUNDS}, CPU time")
    for name in wanted:
        for what, figure, bound in BENCHMARKS[name]():
            print(f"{what:62} {figure:>34}   {bound}")


def _replay() -> Iterator[Row]:
    for ops, bound in ((20_000, 0.30), (1_000_000, 0.22)):
        ratios = []
        for _ in range(ROUNDS):
            raw = timeouts_per_second()
            ratios.append(replay.ops_per_second(ops) / raw)
        yield f"replay, {ops:,} ops on 64 pools, ratio to raw timeouts/s", f"{statistics.median(ratios):.2f}", f">= {bound}"


def _memory() -> Iterator[Row]:
    yield "replay, peak memory beside the graph, 1,000,000 ops", f"{replay.bytes_per_op(1_000_000):.0f} B/op", "<= 300"


def _fair() -> Iterator[Row]:
    for flows in (100, 1000, 10_000):
        costs, ratios = [], []
        for _ in range(ROUNDS):
            raw = timeouts_per_second()
            costs.append(fair.event_cost(flows) * 1e6)
            ratios.append(costs[-1] * raw / 1e6)
        figure = f"{statistics.median(costs):.0f} us = {statistics.median(ratios):.0f} raw timeouts"
        yield f"fair-sharing event, 24 routes, {flows:,} flows", figure, "<= 40 us"


def _lowering() -> Iterator[Row]:
    yield "lower and flatten a loop of 1,000,000", f"{statistics.median(lowering.seconds() for _ in range(3)):.2f} s", "<= 1 s"


def _startup() -> Iterator[Row]:
    yield "hwsim --help", f"{startup.cpu_seconds(['--help']) * 1e3:.0f} ms", "<= 100 ms"
    simulate = ["simulate", "d2l-laptop", "d2l/async-loop"]
    yield "hwsim simulate d2l-laptop d2l/async-loop", f"{startup.cpu_seconds(simulate) * 1e3:.0f} ms", "<= 500 ms"


BENCHMARKS: Final[dict[str, Callable[[], Iterator[Row]]]] = {
    "replay": _replay,
    "memory": _memory,
    "fair": _fair,
    "lowering": _lowering,
    "startup": _startup,
}

if __name__ == "__main__":
    main()
