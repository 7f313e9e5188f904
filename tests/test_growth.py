"""Cost grows with the size of a run, not with its square: calls of functions, which no load of the computer changes.

Of three sizes the growth from the first to the last is compared with that to the one between; what every run takes falls out.
What numpy does inside a call, and a search through a list, are not seen.
"""

from __future__ import annotations

import cProfile
import gc
import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pytest

import hwsim
from hwsim.machine import Machine
from hwsim.machine.capacity_numbers import CapacityNumbers
from hwsim.machine.net import Net
from hwsim.prepare import load_machine

MOST: Final = 1.15

Sizes = tuple[int, int, int]
CASES: Final[list[tuple[str, str, str, Sizes, dict[str, Any]]]] = [
    ("d2l-laptop", "d2l/async-loop", "n", (50, 150, 450), {}),
    ("d2l-gpu-workstation", "d2l/copy-overlap", "n", (20, 60, 180), {}),
    ("d2l-4gpu-pcie", "d2l/bucketed-overlap", "buckets", (40, 80, 160), {}),  # all from 500 ops on: compiled code plays them
    ("d2l-4gpu-pcie", "d2l/bucketed-overlap", "steps", (2, 4, 8), {}),
    ("scale/rail-fat-tree", "scale/allreduce", "let.nodes", (2, 4, 8), {"fold": "never"}),
    ("scale/rail-fat-tree", "scale/allreduce", "let.nodes", (8, 16, 32), {"fold": "always"}),
    ("scale/rail-fat-tree", "scale/mlp-dp", "let.nodes", (2, 4, 8), {"fold": "never"}),  # one node has no network
    ("scale/rail-fat-tree", "scale/tp8-dp", "let.nodes", (1, 2, 4), {"fold": "never"}),
    ("scale/rail-fat-tree", "scale/allreduce", "let.nodes", (32, 64, 128), {"algorithm": "hierarchical"}),
    ("scale/rail-fat-tree", "scale/allreduce", "let.nodes", (8, 16, 32), {"let.per_leaf": 2, "algorithm": "hierarchical"}),
    ("scale/rail-fat-tree", "scale/allreduce", "let.pods", (2, 4, 8), {"let.nodes": 16, "algorithm": "hierarchical"}),
    ("scale/rail-fat-tree", "scale/allreduce", "let.nodes", (9, 18, 36), {"algorithm": "auto"}),  # up to 64 GPUs otherwise
    ("scale/star", "scale/allreduce", "let.ranks", (16, 32, 64), {"steps": "explicit", "fold": "always"}),
    ("scale/star", "scale/mlp-dp", "let.ranks", (64, 128, 256), {}),
    ("scale/star", "scale/tp8-dp", "let.ranks", (64, 128, 256), {}),
    ("dgx-h100", "serving/chat", "requests", (100, 200, 400), {}),  # fewer drown in texts that are parsed anew
    ("dgx-a100", "resnet50-dp", "steps", (2, 4, 8), {"fold": "always"}),
    ("dgx-a100", "resnet50-dp", "gpus", (1, 2, 4), {"steps": 1}),
]


def profiled(run: Callable[[], object]) -> list[Any]:
    """Of each function of Python and C that it calls: its code and the number of calls, which compiled code counts."""
    profile = cProfile.Profile()
    gc.disable()
    profile.enable()
    try:
        run()
    finally:
        profile.disable()
        gc.enable()
    return profile.getstats()


def calls(run: Callable[[], object]) -> int:
    """Functions of Python and C that it calls."""
    return sum(row.callcount for row in profiled(run))


def called(run: Callable[[], object], *functions: Callable[..., object]) -> int:
    """Calls of these functions of Python."""
    codes = {function.__code__ for function in functions}
    return sum(row.callcount for row in profiled(run) if row.code in codes)


def exponent(sizes: Sizes, costs: list[int]) -> float:
    """The power of the size that the cost beyond the first size's grows with; 0 if it does not grow by a fifth."""
    first, second, third = costs
    if third <= 1.2 * first:
        return 0.0
    return math.log((third - first) / max(1, second - first)) / math.log((sizes[2] - sizes[0]) / (sizes[1] - sizes[0]))


@pytest.mark.parametrize(("machine", "workload", "path", "sizes", "options"), CASES)
def test_cost_grows_as_the_size(machine: str, workload: str, path: str, sizes: Sizes, options: dict[str, Any]) -> None:
    fold, others = options.get("fold", "auto"), {name: value for name, value in options.items() if name != "fold"}

    def run(size: int) -> object:
        return hwsim.simulate(machine, workload, set={path: size, **others}, expect=False, fold=fold)

    run(sizes[-1])  # imports, and what is kept from run to run
    grown = exponent(sizes, [calls(partial(run, size)) for size in sizes])
    assert grown <= MOST, f"calls ~ size^{grown:.2f}"


def copies(flows: int) -> object:
    some = [
        {"copy": {"name": f"c{n}", "from": f"gpu{n % 8}", "to": f"gpu{8 + n % 7}", "bytes": "1 MB", "queue": f"q{n}"}}
        for n in range(flows)
    ]
    return hwsim.simulate("scale/star", {"hwsim": "workload/1", "program": some}, set={"machine.let.ranks": 16})


def unequal_parts(pairs: int) -> object:
    nodes = math.isqrt(pairs) // 8
    skew = [1 + 7 * rank % 13 for rank in range(8 * nodes)]
    program = [{"alltoall": {"among": "gpu*", "bytes": "64 MB", "algorithm": "pairwise", "skew": skew}}]
    return hwsim.simulate("scale/rail-fat-tree", {"hwsim": "workload/1", "program": program}, set={"machine.let.nodes": nodes})


def with_jitter(ranks: int) -> object:
    jitter = {"at": "0 s", "part": "gpu*", "jitter": "5 %", "every": "10 ms", "for": "10 s", "seed": 1}
    workload = {"hwsim": "workload/1", "use": "scale/mlp-dp", "events": [jitter]}
    return hwsim.simulate("scale/star", workload, set={"machine.let.ranks": ranks}, expect=False)


def with_a_slow_rank(ranks: int) -> object:
    slow = {"at": "0 s", "part": "gpu0", "speed": "80 %"}
    workload = {"hwsim": "workload/1", "use": "scale/mlp-dp", "events": [slow]}
    return hwsim.simulate("scale/star", workload, set={"machine.let.ranks": ranks}, expect=False)


def points(count: int) -> object:
    return hwsim.sweep("d2l-laptop", "d2l/async-loop", {"n": [str(5 + index) for index in range(count)]})


def fat_tree(nodes: int) -> Machine:
    return load_machine({"hwsim": "machine/1", "use": "scale/rail-fat-tree", "let": {"nodes": nodes, "per_leaf": 4}})


def links(nodes: int) -> object:
    machine = fat_tree(nodes)
    return list(machine.links), list(machine.capacities)


def routes(nodes: int) -> object:
    machine = fat_tree(nodes)
    first, *others = machine.devices_of("gpu")
    return [machine.route(first, other) for other in others]


def neighbours(nodes: int) -> object:
    machine = fat_tree(nodes)
    gpus = machine.devices_of("gpu")
    return machine.draws(gpus, (*gpus[8:], *gpus[:8]), 1e6)


@pytest.mark.parametrize(
    ("run", "sizes"),
    [
        (copies, (20, 40, 80)),
        (unequal_parts, (256, 1024, 4096)),
        (with_jitter, (16, 32, 64)),
        (with_a_slow_rank, (16, 32, 64)),
        (points, (4, 8, 16)),
        (links, (8, 16, 32)),
        (routes, (8, 16, 32)),
        (neighbours, (32, 64, 128)),
    ],
)
def test_cost_of_other_sizes_grows_as_they_do(run: Callable[[int], object], sizes: Sizes) -> None:
    run(sizes[-1])
    grown = exponent(sizes, [calls(partial(run, size)) for size in sizes])
    assert grown <= MOST, f"calls ~ size^{grown:.2f}"


@pytest.mark.parametrize("algorithm", ["hierarchical", "halving-doubling"])
def test_a_collective_of_many_ranks_names_few_capacities(algorithm: str) -> None:
    def run(nodes: int) -> object:
        settings = {"machine.let.nodes": nodes, "algorithm": algorithm}
        return hwsim.simulate("scale/rail-fat-tree", "scale/allreduce", set=settings, expect=False)

    few, many = (called(partial(run, nodes), CapacityNumbers.name, Net.drawing) for nodes in (64, 256))
    assert many <= 1.5 * few + 20, f"{few} names of {64 * 8} ranks, {many} of {256 * 8}"


def test_a_rank_more_in_a_collective_takes_few_calls() -> None:
    def run(nodes: int) -> object:
        settings = {"machine.let.nodes": nodes, "algorithm": "hierarchical"}
        return hwsim.simulate("scale/rail-fat-tree", "scale/allreduce", set=settings, expect=False)

    run(64)
    few, many = (calls(partial(run, nodes)) for nodes in (64, 256))
    assert (many - few) / (192 * 8) <= 300
