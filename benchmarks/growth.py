"""How cost grows: CPU time and memory of whole processes against ranks and points of a study, of simulations against ops and
flows, with the exponent.

python -m benchmarks.growth [FIGURE.png]
"""

from __future__ import annotations

import math
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from benchmarks import network, processes, replay
from hwsim.engine import core, fast, simulate


class Point(NamedTuple):
    """Something of this size took so many seconds and bytes."""

    size: int
    seconds: float
    memory: float


def by_ranks() -> Iterator[Point]:
    """Whole processes: a hierarchical all-reduce on a rail-optimised fat-tree."""
    for nodes in (1, 8, 64, 512, 4096, 12500):
        settings = (f"let.nodes={nodes}", f"let.pods={1 if nodes < 64 else 4}", "algorithm=hierarchical")
        sets = [word for setting in settings for word in ("--set", setting)]
        taken = processes.hwsim("simulate", "scale/rail-fat-tree", "scale/allreduce", *sets, runs=1)
        yield Point(nodes * 8, taken.seconds, taken.memory)


def by_ops() -> Iterator[Point]:
    """Replays on 64 pools, with compiled code where it is."""
    choice: fast.Choice = "always" if core.is_there() else "never"
    simulate(replay.random_graph(1000), fast=choice)
    for ops in (10**3, 10**4, 10**5, 10**6, 10**7) if core.is_there() else (10**3, 10**4, 10**5, 10**6):
        graph = replay.random_graph(ops)
        yield _inside(ops, lambda graph=graph: simulate(graph, fast=choice))  # type: ignore[misc]


def by_flows() -> Iterator[Point]:
    """Flows over a star, all started together, with compiled code where it is."""
    choice: fast.Choice = "always" if core.is_there() else "never"
    for count in (10, 100, 1000, 10_000, 100_000) if core.is_there() else (10, 100, 1000):
        graph = network.flows(count)
        yield _inside(count, lambda graph=graph: simulate(graph, fast=choice))  # type: ignore[misc]


_STUDY: Final = """
hwsim: study/1
machine: d2l-laptop
workload: d2l/async-loop
points: {{grid: {{workload.runtime.dispatch: 1 ns..{points} ns:+1 ns}}}}
rows: rows.csv
"""


def by_points() -> Iterator[Point]:
    """Whole processes with one worker: studies of a small program under a runtime that issues faster or slower."""
    for points in (10, 100, 1000, 10_000, 100_000):
        with TemporaryDirectory() as folder:
            file = Path(folder, "study.yaml")
            file.write_text(_STUDY.format(points=points))
            taken = processes.hwsim("study", str(file), "--workers", "1", runs=1)
        yield Point(points, taken.seconds, taken.memory)


CURVES: Final[dict[str, Callable[[], Iterator[Point]]]] = {
    "ranks": by_ranks,
    "ops": by_ops,
    "flows": by_flows,
    "points": by_points,
}


def exponent(points: Sequence[Point]) -> float:
    """Of the last step, where what every run takes is least: seconds ~ size ** exponent."""
    before, last = points[-2:]
    return math.log(last.seconds / before.seconds) / math.log(last.size / before.size)


def main() -> None:
    """Print the points, and draw them if a file is named."""
    found = {}
    for name, curve in CURVES.items():
        found[name] = tuple(curve())
        for size, seconds, memory in found[name]:
            print(f"{size:>12,} {name:6} {seconds:10.3f} s {memory / 1e6:10.1f} MB")
        print(f"{'':12} {name:6} seconds ~ {name}^{exponent(found[name]):.2f} over the last step")
    for path in sys.argv[1:]:
        _draw(found, path)


def _inside(size: int, play: Callable[[], object]) -> Point:
    """CPU time of one call, and the peak of what it allocates in a second one, if one takes no longer than 3 s."""
    begin = time.process_time()
    play()
    seconds = time.process_time() - begin
    if seconds > 3:
        return Point(size, seconds, math.nan)
    tracemalloc.start()
    play()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Point(size, seconds, most)


def _draw(found: dict[str, tuple[Point, ...]], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(found), figsize=(14, 6), layout="constrained")
    for column, (name, points) in enumerate(found.items()):
        sizes = [point.size for point in points]
        for axis, values, unit in (
            (axes[0][column], [point.seconds for point in points], "CPU time [s]"),
            (axes[1][column], [point.memory / 1e6 for point in points], "peak memory [MB]"),
        ):
            axis.loglog(sizes, values, "o-")
            axis.set_xlabel(name)
            axis.set_ylabel(unit)
            axis.grid(visible=True, which="both", alpha=0.3)
        axes[0][column].set_title(f"seconds ~ {name}^{exponent(points):.2f}")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
