"""Times and bytes beyond 2**63 are exact or refused, by every way into the program."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from hwsim import api, ticks
from hwsim.engine import Deadlock, simulate
from hwsim.graph.files import save_graph
from hwsim.graph.opgraph import OpGraph
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError
from hwsim.views.explain.explanation import Explanation, explain
from tests.command import hwsim
from tests.strategies import graphs, networks
from tests.stretching import assert_in_proportion, stretched, sums

near = st.one_of(
    st.integers(-10, 10), st.integers(2**62 - 3, 2**62 + 3), st.integers(2**63 - 3, 2**63 + 3), st.integers(-(2**65), 2**65)
)
columns = st.lists(near, max_size=8)


def canonical(column: ticks.Column) -> list[int]:
    """The values of a column, whose dtype is the one that its values have."""
    values: list[int] = column.tolist()
    fits = all(-(2**63) <= value < 2**63 for value in values)
    assert column.dtype == (np.int64 if fits else object)
    assert all(type(number) is int for number in values)
    return values


# ---- the columns themselves ----


@given(columns)
def test_a_column_holds_its_values(values: list[int]) -> None:
    made = ticks.column(values)
    assert canonical(made) == values
    assert canonical(ticks.column(made)) == values
    assert canonical(ticks.column(np.array(values, object))) == values
    assert ticks.widened(made).tolist() == values
    assert ticks.total(made) == sum(values)
    assert ticks.total(ticks.widened(made)) == sum(values)
    running = [sum(values[: place + 1]) for place in range(len(values))]
    assert canonical(ticks.running_total(made)) == running


@given(columns, columns, near)
def test_sums_and_products_are_those_of_python(one: list[int], other: list[int], number: int) -> None:
    rows = list(zip(one, other, strict=False))
    left, right = (ticks.column([row[side] for row in rows]) for side in (0, 1))
    assert canonical(ticks.add(left, right)) == [a + b for a, b in rows]
    assert canonical(ticks.add(left, number)) == [a + number for a, _ in rows]
    assert canonical(ticks.multiply(left, right)) == [a * b for a, b in rows]
    assert canonical(ticks.multiply(left, number)) == [a * number for a, _ in rows]


@given(st.lists(st.lists(near, min_size=1, max_size=4), max_size=4))
def test_groups_are_added_up_one_by_one(groups: list[list[int]]) -> None:
    firsts = np.cumsum([0, *map(len, groups)])[:-1]
    found = ticks.group_totals(ticks.column([number for group in groups for number in group]), firsts)
    assert canonical(found) == [sum(group) for group in groups]


@given(st.lists(st.tuples(st.integers(0, 2**64), st.integers(0, 2**64))))
def test_what_intervals_cover_is_counted_once(pairs: list[tuple[int, int]]) -> None:
    spans = sorted((min(pair), max(pair)) for pair in pairs)
    covered = reached = 0
    for begin, end in spans:
        covered += max(0, end - max(begin, reached))
        reached = max(reached, end)
    columns_of = ticks.alike(ticks.column([span[0] for span in spans]), ticks.column([span[1] for span in spans]))
    assert ticks.covered(*columns_of) == covered


def test_a_long_column_is_added_up_in_halves() -> None:
    values = np.full(100_003, 2**62 + 12345)
    assert ticks.total(values) == 100_003 * (2**62 + 12345)
    assert ticks.total(-values) == -100_003 * (2**62 + 12345)


def test_columns_that_meet_have_one_dtype() -> None:
    wide = ticks.column([2**63])
    assert ticks.matching([1], wide).dtype == object
    assert ticks.matching([1], ticks.column([1])).dtype == np.int64
    assert [column.dtype for column in ticks.alike(ticks.column([1]), wide)] == [object, object]


def test_a_column_of_other_numbers_is_refused() -> None:
    for wrong in (np.array([2**63], np.uint64), np.array([1.0])):
        with pytest.raises(TypeError):
            ticks.column(wrong)


@pytest.mark.parametrize("seconds", [math.inf, math.nan, 1.1e9, 1e290, 1e308])
def test_a_time_too_long_is_refused_by_name(seconds: float) -> None:
    with pytest.raises(ticks.TooLong):
        ticks.femtoseconds(seconds)
    with pytest.raises(ticks.TooLong):
        ticks.rounded(np.array([1.0, seconds * ticks.FEMTO]))


def test_the_longest_time_is_accepted() -> None:
    assert ticks.femtoseconds(1e9) == pytest.approx(ticks.LONGEST)
    assert canonical(ticks.rounded(np.array([0.0, 2.0**63, 1e24]))) == [0, 2**63, int(1e24)]


# ---- runs ----


def without_costs(graph: OpGraph) -> OpGraph:
    """The ops with their own times alone, which are whole numbers of fs."""
    return replace(graph, costs=(), blocks=tuple(replace(block, cost=np.full(len(block), -1)) for block in graph.blocks))


def played(graph: OpGraph) -> Timeline:
    try:
        return simulate(graph)
    except Deadlock:
        assume(False)
        raise


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), power=st.sampled_from([40, 52, 55, 60, 63, 69]))
def test_own_times_grow_in_proportion(graph: OpGraph, power: int) -> None:
    base = played(without_costs(graph))
    longer = simulate(stretched(without_costs(graph), power))
    assert canonical(ticks.column(longer.end)) == [end << power for end in base.end.tolist()]
    assert longer.start.tolist() == [start << power for start in base.start.tolist()]
    assert longer.start.dtype == longer.end.dtype
    assert_in_proportion(sums(base), sums(longer), 2**power, 0)


@settings(max_examples=40, deadline=None)
@given(graph=networks(), power=st.integers(28, 40))
def test_transfers_grow_in_proportion(graph: OpGraph, power: int) -> None:
    base = stretched(graph, 20)
    ops = 10 * graph.total  # an fs each time that a pace changes
    assert_in_proportion(sums(simulate(base)), sums(simulate(stretched(base, power))), 2**power, ops)


@settings(max_examples=40, deadline=None)
@given(graph=graphs(), power=st.integers(20, 39))
def test_sums_agree_at_any_length(graph: OpGraph, power: int) -> None:
    try:
        found = sums(played(stretched(graph, power)))
    except ticks.TooLong:
        reject()  # an op of more than 31.7 years
    assert found["makespan",] == found["causes",] == found["steps",]
    for name, busy in found.items():
        if name[0] == "ran":
            assert busy >= found["path", *name[1:]] >= 0


# ---- front doors and commands ----

HOUR = 3600 * ticks.FEMTO


def workload(**keys: Any) -> dict[str, Any]:
    return {"hwsim": "workload/1", **keys}


def loop(times: int, *ops: Any) -> dict[str, Any]:
    return workload(program=[{"repeat": {"times": times, "do": list(ops)}}])


def busy(device: str, time: str, **keys: Any) -> dict[str, Any]:
    return {"busy": {"device": device, "time": time, **keys}}


def explained(run: api.Run) -> Explanation:
    return explain(run, again=False)


LOOPS = [(100, "1 h", 100.0), (1000, "3 h", 3000.0), (2000, "43.83 h", 87660.0), (120_000, "90 ms", 3.0)]


@pytest.mark.parametrize(("times", "each", "hours"), LOOPS)
def test_a_long_loop_takes_as_long_as_its_iterations(times: int, each: str, hours: float) -> None:
    found = api.simulate("d2l-laptop", loop(times, busy("cpu", each)))
    assert found.timeline.makespan_fs == round(hours * 3600) * ticks.FEMTO
    assert {usage.capacity: usage.busy_fs for usage in found.usage}["cpu.cores"] == found.timeline.makespan_fs


def test_a_job_starts_late(tmp_path: Path) -> None:
    jobs = {"late": {"start": "3 h", "program": [busy("cpu", "1 s")]}, "soon": {"program": [busy("cpu", "1 s")]}}
    run = api.simulate("d2l-laptop", workload(jobs=jobs))
    assert [(job.name, job.start_s, job.end_s) for job in run.jobs] == [("late", 10800.0, 10801.0), ("soon", 0.0, 1.0)]
    assert explained(run).path.limited_by[0].time_fs == 3 * HOUR
    with pytest.raises(SpecError, match=r"10800 s exceeds the limit of 9223 s"):
        save_graph(run.timeline.flat.graph, tmp_path / "graph.npz")


SMALL = {"layers": 2, "hidden": 256, "heads": 4, "vocab": 1000, "sequence": 512, "positions": "rotary", "bias": False}


@pytest.mark.parametrize(("requests", "every"), [(5, "3 h"), (57, "3 h"), (3, "5000 day")])
def test_requests_arrive_for_a_week(requests: int, every: str) -> None:
    infer = {"model": SMALL, "device": "gpu0", "requests": requests, "arrivals": {"every": every}, "prompt": 10, "output": 3}
    near = api.simulate("dgx-h100", workload(infer={**infer, "arrivals": {"every": "1 s"}}))
    far = api.simulate("dgx-h100", workload(infer=infer))
    apart = {"h": 3600, "day": 86400}[every.split()[1]] * int(every.split(maxsplit=1)[0])
    last = ticks.femtoseconds(float((requests - 1) * apart))
    assert far.timeline.makespan_fs - last == near.timeline.makespan_fs - (requests - 1) * ticks.FEMTO
    [soon], [late] = near.serving, far.serving
    assert late.first_token == soon.first_token
    assert late.latency == soon.latency
    assert_sound(far)


def assert_sound(run: api.Run) -> None:
    """What is told of the run contradicts nothing in it."""
    found = sums(run.timeline)
    assert found["makespan",] == found["causes",] == found["steps",]
    assert all(time >= 0 for time in found.values())
    for usage in run.usage:
        assert 0 <= usage.busy_fs <= run.timeline.makespan_fs
        assert 0 <= usage.utilization <= 1 + 1e-9
    json.dumps(run.to_json(ops=True), allow_nan=False)


def test_values_of_exabytes_are_added_up() -> None:
    copies = [{"copy": {"from": "cpu", "to": "gpu0", "bytes": "5 EB", "writes": name}} for name in "abc"]
    with pytest.raises(api.OutOfMemory, match="gpu0 needs 15 EB"):
        api.simulate("d2l-4gpu-pcie", workload(program=[*copies, {"wait": "all"}]))


def test_a_request_too_late_is_refused() -> None:
    infer = {"model": SMALL, "device": "gpu0", "requests": 3, "arrivals": {"every": "10000 day"}, "prompt": 10, "output": 3}
    with pytest.raises(SpecError, match=r"the last request arrives after 1\.728e"):
        api.simulate("dgx-h100", workload(infer=infer))


TOO_LONG = """hwsim: workload/1
program:
  - busy: {device: cpu, time: 1 s}
  - repeat: {times: 3, do: [{OP}]}
"""


@pytest.mark.parametrize(
    ("machine", "op", "said"),
    [
        ("d2l-4gpu-pcie", "copy: {from: cpu, to: gpu0, bytes: 1e30 B}", "'copy' takes 6.25e+19 s, which is too long"),
        ("d2l-4gpu-pcie", "copy: {from: cpu, to: gpu0, bytes: 1e290 B}", "'copy' takes 6.25e+279 s, which is too long"),
        ("d2l-4gpu-pcie", "compute: {name: sum, device: gpu0, flop: 1e290 FLOP}", "'sum' takes 7.463e+276 s, which is too long"),
        ("d2l-laptop", "read: {from: disk, bytes: 1e300 B}", "'read' takes"),
        ("d2l-laptop", "access: {device: cpu, bytes: 64 B, count: 1e290}", "'access' takes"),
        ("d2l-laptop", "busy: {device: cpu, time: 1e290 s}", "'1e290 s' is above the maximum of 1e9 s (31.7 years)"),
        ("d2l-laptop", "busy: {device: cpu, time: inf}", "'inf' is not a time"),
        ("d2l-laptop", "busy: {device: cpu, time: nan}", "'nan' is not a time"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "explain"])
def test_a_time_too_long_is_refused_at_its_line(tmp_path: Path, machine: str, op: str, said: str, command: str) -> None:
    path = tmp_path / "long.yaml"
    path.write_text(TOO_LONG.replace("OP", op), encoding="utf-8")
    verb, *options = command.split()
    found = hwsim(verb, machine, path, *options, code=2)
    assert re.match(rf"{re.escape(str(path))}:4:\d+: {re.escape(said)}", found.output)


LONG_RUNS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a pipeline of slow batches": (
        "d2l-laptop",
        {
            "pipeline": {
                "batches": 12,
                "stages": [
                    {"name": "read", "do": [busy("cpu", "3 h")], "at_once": 2, "ahead": 2},
                    {"name": "train", "do": [busy("cpu", "1 day")]},
                ],
            }
        },
    ),
    "a link that fails after 3 h": (
        "d2l-4gpu-pcie",
        {
            "program": [{"repeat": {"times": 5, "do": [{"copy": {"from": "cpu", "to": "gpu0", "bytes": "200 TB"}}]}}],
            "events": [{"part": "gpu0", "at": "3 h", "down": "5 h"}],
        },
    ),
    "a year of writing to a disk": ("d2l-laptop", {"program": [{"write": {"to": "disk", "bytes": "100 PB"}}]}),
    "a year of random accesses": ("d2l-laptop", {"program": [{"access": {"device": "cpu", "bytes": "64 B", "count": 1e15}}]}),
    "an exchange of many gradients": (
        "d2l-4gpu-pcie",
        {
            "program": {
                "each": "gpu*",
                "do": [{"repeat": {"times": 3, "do": [{"allreduce": {"among": "gpu*", "bytes": "300 TB"}}]}}],
            }
        },
    ),
}


@pytest.mark.parametrize("name", LONG_RUNS)
def test_every_front_door_is_sound_beyond_the_limit(name: str) -> None:
    machine, keys = LONG_RUNS[name]
    run = api.simulate(machine, workload(**keys))
    assert run.timeline.makespan_fs > ticks.LARGEST
    assert_sound(run)


def library_pairs() -> list[tuple[str, str]]:
    """Machine and workload of every file of the library that expects something of a machine."""
    folder = Path(__file__).parent.parent / "workloads"
    found = []
    for path in sorted(folder.rglob("*.yaml")):
        machine = re.search(r"expect:\s*\{?\s*machine:\s*([\w./-]+)", path.read_text(encoding="utf-8"))
        if machine is not None:
            found.append((machine[1], str(path.relative_to(folder))[: -len(".yaml")]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "name"), library_pairs())
def test_the_library_grows_in_proportion(machine: str, name: str) -> None:
    low = api.prepare(machine, name)
    if low.doors or low.machine.by_requests() or any(cost.played for cost in low.graph.costs):
        pytest.skip("it does not run on own times alone")
    base = sums(simulate(low.graph))
    reach = max(1, math.ceil(math.log2(ticks.LARGEST / base["makespan",])))
    for power in (reach - 1, reach + 1, reach + 12):
        longer = sums(simulate(stretched(low.graph, power)))
        for key, time in longer.items():  # rounding to fs may swap who is first: a thousandth
            assert abs(time - base.get(key, 0) * 2**power) <= 4e-3 * base["makespan",] * 2**power + 1e-3 * time, key
        assert longer["makespan",] == longer["causes",] == longer["steps",]
