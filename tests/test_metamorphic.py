"""What must stay true when a pair of machine and workload is changed in a known way, over random valid pairs.

HWSIM_LAWS is the number of pairs for each law; the slow test runs six times as many others, twice as many of the law whose
pairs run ten times each.
"""

from __future__ import annotations

import copy
import os
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from hwsim import api, engine
from hwsim.results.differences import differences
from hwsim.results.timeline import Timeline
from hwsim.views.explain.explanation import explain
from tests.random_pairs import File, Pair, random_pair, random_star

COUNT = int(os.environ.get("HWSIM_LAWS", "18"))
ANOMALY: Final = 0.01  # how much longer a run may take on a better machine where ops compete: docs/engine.md has an example
RATES: Final = ("B/s", "FLOP/s", "1/s")
NUMBER: Final = re.compile(r"([-+.\deE]+) (s|ms|us|B|FLOP|B/s|FLOP/s|1/s)$")

Place = tuple[str | int, ...]


def run(pair: Pair, **keys: Any) -> api.Run:
    return api.simulated(*copy.deepcopy(pair), **keys)


def times(timeline: Timeline) -> list[tuple[int, int]]:
    """Start and end of every op, in the order of the program."""
    return list(zip(timeline.start.tolist(), timeline.end.tolist(), strict=True))


def competes(timeline: Timeline) -> bool:
    """Whether ops share a capacity that is full, or wait for a server of a pool."""
    return bool(timeline.solves) or max(timeline.granted.tolist(), default=-1) >= 0


def quantities(value: Any, place: Place = ()) -> Iterator[tuple[Place, float, str]]:
    """(place, number, unit) of every quantity in a file."""
    if isinstance(value, dict):
        for key, node in value.items():
            yield from quantities(node, (*place, key))
    elif isinstance(value, list):
        for index, node in enumerate(value):
            yield from quantities(node, (*place, index))
    elif isinstance(value, str) and (found := NUMBER.match(value)):
        yield place, float(found[1]), found[2]


def put(file: File, place: Place, text: str) -> File:
    """A copy of a file with one value replaced."""
    changed = copy.deepcopy(file)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = text
    return changed


def assert_not_faster(better: api.Run, worse: api.Run) -> None:
    """The better run takes no longer; where ops compete, by no more than a known anomaly."""
    one, other = better.timeline, worse.timeline
    if competes(one) or competes(other):
        assert one.makespan_fs <= other.makespan_fs * (1 + ANOMALY) + 2 * len(one)
    else:
        assert one.makespan_fs <= other.makespan_fs + 2 * len(one)


# ---------------------------------------------------------------- the laws


def a_faster_part_never_slows_a_run(dice: random.Random) -> None:
    pair = random_pair(dice)
    place, number, unit = dice.choice(list(quantities(pair.machine)))
    if unit in RATES:
        text = f"{number * dice.choice([1.01, 2, 10])!r} {unit}"
    elif unit == "s" or unit.endswith("s"):
        text = f"{number / dice.choice([1.01, 2, 10])!r} {unit}"
    else:
        return
    assert_not_faster(run(pair._replace(machine=put(pair.machine, place, text))), run(pair))


def more_work_never_speeds_a_run(dice: random.Random) -> None:
    pair = random_pair(dice)
    places = [quantity for quantity in quantities(pair.workload) if "runtime" not in quantity[0]]
    if places:
        place, number, unit = dice.choice(places)
        more = put(pair.workload, place, f"{number * dice.choice([1.01, 2, 10])!r} {unit}")
        assert_not_faster(run(pair), run(pair._replace(workload=more)))


def an_unused_part_changes_nothing(dice: random.Random) -> None:
    pair = random_pair(dice)
    machine = copy.deepcopy(pair.machine)
    machine["parts"]["idle"] = {"kind": "gpu", "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "1 GiB", "bandwidth": "1 GB/s"}}
    at = "switch" if "switch" in machine["parts"] else "psw"
    machine["links"].append({"between": ["idle", at], "kind": "direct", "bandwidth": "1 GB/s"})
    before, after = run(pair), run(pair._replace(machine=machine))
    assert times(after.timeline) == times(before.timeline)
    used = {row.capacity: row for row in after.usage}
    assert all(used[row.capacity] == row for row in before.usage)
    assert all(not row.busy_fs for row in after.usage if row.capacity.startswith("idle"))


def names_and_the_order_of_entries_change_nothing(dice: random.Random) -> None:
    pair = random_pair(dice)
    words = {
        "cpu": "zcpu",
        "gpu": "a-gpu-",
        "disk": "ssd",
        "psw": "m",
        "switch": "b",
        "old": "z-",
        "new": "c-",
        "x": "w",
        "y": "v",
    }

    def renamed(value: Any, *, key: bool = False) -> Any:
        if isinstance(value, dict):
            entries = [
                (renamed(name, key=True) if name in words and name not in FIXED else name, node) for name, node in value.items()
            ]
            if dice.random() < 0.5:
                entries.reverse()
            return {name: node if name in KEPT else renamed(node) for name, node in entries}
        if isinstance(value, list):
            return [renamed(node) for node in value]
        if isinstance(value, str) and (found := re.fullmatch(r"(cpu|gpu|disk|psw|switch|old|new|x|y)(\d*\*?)", value)):
            return words[found[1]] + found[2]
        return value

    other = Pair(renamed(pair.machine), renamed(pair.workload))
    other.machine["links"].reverse()
    assert times(run(other).timeline) == times(run(pair).timeline)


FIXED: Final = {"kind"}
KEPT: Final = {"kind", "name", "hwsim", "algorithm", "access"}


def two_independent_copies_take_the_time_of_one(dice: random.Random) -> None:
    pair = random_pair(dice)
    if "program" not in pair.workload or "runtime" in pair.workload or re.search("'(read|write)'", str(pair.workload)):
        return  # a host thread, and the memory that a disk is read into, are those of the first CPU
    machine, programs = copy.deepcopy(pair.machine), {"one": pair.workload["program"]}

    def twin(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: node if key in KEPT else twin(node) for key, node in value.items()}
        if isinstance(value, list):
            return [twin(node) for node in value]
        if isinstance(value, str) and (found := re.fullmatch(r"(cpu|gpu|disk|psw|switch|old|new)(\d*\*?)", value)):
            return f"twin-{found[1]}{'-' if found[2] else ''}{found[2]}"
        return value

    programs["two"] = twin(programs["one"])
    counted = {name for name, part in pair.machine["parts"].items() if "count" in part}
    machine["parts"] |= {f"twin-{name}{'-' if name in counted else ''}": part for name, part in pair.machine["parts"].items()}
    machine["links"] += [{**twin(link), "name": f"twin-{link['name']}"} for link in pair.machine["links"]]
    both = run(Pair(machine, {"hwsim": "workload/1", "name": "twice", "programs": programs}))
    alone = run(pair)
    assert both.timeline.makespan_fs == alone.timeline.makespan_fs
    assert sorted(times(both.timeline)) == sorted(2 * times(alone.timeline))


def k_times_all_times_is_k_times_the_makespan(dice: random.Random) -> None:
    machine, workload = pair = random_pair(dice)
    k = dice.choice([2, 4, 1024])
    for place, number, unit in list(quantities(machine)):
        if unit in RATES or unit in {"s", "ms", "us"}:
            machine = put(machine, place, f"{number / k if unit in RATES else number * k!r} {unit}")
    for place, number, unit in list(quantities(workload)):
        if unit in {"s", "ms", "us"}:
            workload = put(workload, place, f"{number * k!r} {unit}")
    one, other = run(pair).timeline, run(Pair(machine, workload)).timeline
    if competes(one):  # rounding can swap who is served first
        assert other.makespan == pytest.approx(k * one.makespan, rel=0.01)
    else:
        assert abs(other.makespan_fs - k * one.makespan_fs) <= 2 * k * len(one) + 1e-9 * other.makespan_fs


def folded_is_unfolded(dice: random.Random) -> None:
    pair = Pair(random_star(dice), random_pair(dice).workload)
    while "each" not in pair.workload.get("program", {}):
        pair = random_pair(dice)
    folded, whole = run(pair, fold="always"), run(pair, fold="never")
    assert folded.timeline.makespan_fs == whole.timeline.makespan_fs
    if folded.timeline.flat.graph.alike is not None:
        assert not list(differences(folded.timeline, whole.timeline))


def every_engine_says_the_same(dice: random.Random) -> None:
    pair = random_pair(dice)
    graph = api.prepare(*copy.deepcopy(pair)).graph
    python, simpy = engine.simulate(graph, fast="never"), engine.simulate(graph, which="simpy")
    assert times(simpy) == times(python)
    assert simpy.granted.tolist() == python.granted.tolist()


def compiled_code_says_what_python_says(dice: random.Random) -> None:
    graph = api.prepare(*copy.deepcopy(random_pair(dice))).graph
    python, compiled = engine.simulate(graph, fast="never"), engine.simulate(graph, fast="always")
    assert times(compiled) == times(python)
    assert compiled.granted.tolist() == python.granted.tolist()


def a_what_if_is_the_run_with_its_set(dice: random.Random) -> None:
    pair = random_pair(dice)
    for row in explain(run(pair)).what_if or ():
        if not row.hypothetical and row.makespan_fs:
            assert run(pair, set=dict(row.settings)).timeline.makespan_fs == row.makespan_fs


LAWS: Final[tuple[Callable[[random.Random], None], ...]] = (
    a_faster_part_never_slows_a_run,
    more_work_never_speeds_a_run,
    an_unused_part_changes_nothing,
    names_and_the_order_of_entries_change_nothing,
    two_independent_copies_take_the_time_of_one,
    k_times_all_times_is_k_times_the_makespan,
    folded_is_unfolded,
    every_engine_says_the_same,
    a_what_if_is_the_run_with_its_set,
)


def check(law: Callable[[random.Random], None], seeds: range) -> None:
    for seed in seeds:
        try:
            law(random.Random(f"{law.__name__} {seed}"))
        except AssertionError as broken:
            raise AssertionError(f"{law.__name__.replace('_', ' ')}: seed {seed}") from broken


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_random_pairs(law: Callable[[random.Random], None]) -> None:
    check(law, range(COUNT))


@pytest.mark.slow
@pytest.mark.parametrize("law", [*LAWS, compiled_code_says_what_python_says], ids=lambda law: law.__name__)
def test_laws_of_many_more_random_pairs(law: Callable[[random.Random], None]) -> None:
    times = 2 if law is a_what_if_is_the_run_with_its_set else 6
    check(law, range(1_000_000, 1_000_000 + times * COUNT))
