"""Run the benchmarks and print one table:  python -m benchmarks [NAME...]"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from benchmarks import checks, fair, inorder, lowering, network, replay, scale, served, simgrid, startup, study, unequal
from benchmarks.raw import timeouts_per_second
from hwsim.engine import core, fast

ROUNDS = 5
Row = tuple[str, str, str]


def main() -> None:
    """Print what is measured, the figure, and the figure it is held against."""
    wanted = sys.argv[1:] or list(BENCHMARKS)
    print(f"{platform.machine()}, Python {platform.python_version()}; medians of {ROUNDS}, CPU time")
    for name in wanted:
        for what, figure, bound in BENCHMARKS[name]():
            print(f"{what:62} {figure:>34}   {bound}")


def _checks() -> Iterator[Row]:
    for name, ops, whole, part, text in checks.costs():
        spent = f"{100 * part / whole:.2f} %, {1e3 * part:.2f} ms; text {1e3 * text:.2f} ms"
        yield f"checks of a run: {name} ({ops:,} ops, {whole:.3f} s)", spent, "< 3 % or 0.2 ms"


def _replay() -> Iterator[Row]:
    for ops, bound in ((20_000, 0.45), (1_000_000, 0.30)):
        ratios = []
        for _ in range(ROUNDS):
            raw = timeouts_per_second()
            ratios.append(replay.ops_per_second(ops) / raw)
        yield f"replay, {ops:,} ops on 64 pools, ratio to raw timeouts/s", f"{statistics.median(ratios):.2f}", f">= {bound}"


def _fast() -> Iterator[Row]:
    for ops, bound in ((20_000, 8), (1_000_000, 3)) if core.is_there() else ():
        ratios = []
        for _ in range(ROUNDS):
            raw = timeouts_per_second()
            ratios.append(replay.compiled_ops_per_second(ops) / raw)
        yield f"replay with compiled, {ops:,} ops on 64 pools, ratio", f"{statistics.median(ratios):.2f}", f">= {bound}"


def _inorder() -> Iterator[Row]:
    for name, is_fast in (("Python", False), ("compiled", True)):
        if is_fast and not core.is_there():
            continue
        ratios = []
        for _ in range(ROUNDS):
            raw = timeouts_per_second()
            ratios.append(inorder.ops_per_second(100_000, fast=is_fast) / raw)
        yield f"longest path, 100,000 ops on 64 queues, {name}, ratio", f"{statistics.median(ratios):.1f}", "-"


def _network() -> Iterator[Row]:
    choices: list[fast.Choice] = ["always", "never"] if core.is_there() else ["never"]
    if core.is_there():
        network.seconds(network.flows(100), "always")  # load, compile if need be
    tasks, star, tree = (network.tasks(100_000), network.flows(10_000), network.flows(10_000, fabric="fat-tree"))
    for what, graph, bounds in (
        ("100,000 tasks with transfers over a star", tasks, ("<= 1.3 s", "<= 8 s")),
        ("1,000 flows over a star of 512 hosts", network.flows(1000), ("-", "-")),
        ("10,000 flows over a star of 512 hosts", star, ("<= 5 s", "-")),
        ("10,000 flows over a fat-tree of 512 hosts", tree, ("<= 5 s", "-")),
    ):
        for choice in choices:
            if choice == "never" and what.startswith("10,000"):
                continue  # minutes
            name, bound = ("compiled", bounds[0]) if choice == "always" else ("Python", bounds[1])
            yield f"{what}, {name}", _both(lambda graph=graph, choice=choice: network.seconds(graph, choice)), bound  # type: ignore[misc]
    if (beside := simgrid.tasks(network.as_lines(network.tasks(10_000)))) is not None:
        yield "10,000 of the tasks, SimGrid (C++), whole process", f"{beside.seconds:.2f} s, ends at {beside.said.strip()} s", "-"
    for fabric in ("star", "fat-tree"):
        beside = simgrid.flows(fabric, network.drawn(10_000))
        if beside is not None:
            yield f"10,000 flows over a {fabric}, SimGrid (C++), here", f"{beside.seconds:.2f} s", "-"


def _both(seconds: Callable[[], float]) -> str:
    """Seconds, and how many timeouts the yardstick would have handled meanwhile."""
    found = []
    for _ in range(3):
        raw = timeouts_per_second()
        found.append((own := seconds(), own * raw))
    own, meanwhile = (statistics.median(column) for column in zip(*found, strict=True))
    return f"{own:.2f} s = {meanwhile / 1e6:.2f} M timeouts"


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


def _plans() -> Iterator[Row]:
    """All legal plans of GPT-3 on 1,536 GPUs, the kernels timed for the first time."""
    from hwsim.functions.nodes import cluster_with
    from hwsim.models import ParallelPlan, load_framework, load_transformer
    from hwsim.models.search import Search

    search = Search(load_transformer("gpt-3-175b"), ParallelPlan(global_batch=1536), load_framework("megatron-core"))
    cluster, began = cluster_with("dgx-h100", {}, 192)[0], time.process_time()
    tried = search.on(cluster).legal
    took = time.process_time() - began
    loops = took * timeouts_per_second() / 1e6
    yield f"the fastest of {tried:,} plans", f"{took:.2f} s = {loops:.1f} M timeouts", "<= 2 s for 100,000"


def _startup() -> Iterator[Row]:
    yield "hwsim --help", f"{startup.cpu_seconds(['--help']) * 1e3:.0f} ms", "<= 100 ms"
    simulate = ["simulate", "d2l-laptop", "d2l/async-loop"]
    yield "hwsim simulate d2l-laptop d2l/async-loop", f"{startup.cpu_seconds(simulate) * 1e3:.0f} ms", "<= 500 ms"
    yield "the same, over Python that imports numpy", f"{startup.ratio(simulate):.2f}", "<= 1.8"
    yield "hwsim explain of it, over the same", f"{startup.ratio(['explain', *simulate[1:]]):.2f}", "<= 2.7"


BENCHMARKS: Final[dict[str, Callable[[], Iterator[Row]]]] = {
    "checks": _checks,
    "replay": _replay,
    "fast": _fast,
    "inorder": _inorder,
    "network": _network,
    "memory": _memory,
    "fair": _fair,
    "lowering": _lowering,
    "startup": _startup,
    "scale": scale.rows,
    "served": served.rows,
    "unequal": unequal.rows,
    "study": study.rows,
    "plans": _plans,
}

if __name__ == "__main__":
    main()
