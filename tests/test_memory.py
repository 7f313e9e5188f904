"""Memory over time: closed forms, a second telling, loops like their iterations written out, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.engine import simulate
from hwsim.graph.flat import concatenate, flatten
from hwsim.graph.opgraph import Buffer, Mark, OpGraph
from hwsim.results.memory import DeviceMemory, memory
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError
from hwsim.workload import GraphBuilder
from tests.command import hwsim
from tests.effort import effort

US = 10**9  # fs
MACHINE = yaml.safe_load("""
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 64, flop: {fp32: 1 TFLOP/s}, random: 1e9 1/s, memory: {bandwidth: 40 GB/s}}
  gpu: {kind: gpu, flop: {fp32: 9 TFLOP/s}, memory: {size: 1 GB, bandwidth: 1 TB/s}}
  disk: {kind: disk, read: 2 GB/s, write: 1 GB/s}
  d: {kind: switch, count: 2}
links: [{between: [cpu, [gpu, disk]], kind: direct, bandwidth: 10 GB/s}]
""")
BUILT = api.load_machine(MACHINE)
FREEING = ("scope", "last-use", "stream")


def lowered(program: object, runtime: Mapping[str, Any] | None) -> OpGraph:
    tree = {"hwsim": "workload/1", "program": program, **({} if runtime is None else {"runtime": runtime})}
    return api.prepare(BUILT, tree).graph


def memories(program: object, runtime: Mapping[str, Any] | None) -> dict[str, DeviceMemory]:
    return {use.device: use for use in memory(simulate(lowered(program, runtime)), {})}


def busy(us: int, device: str = "d0", **keys: Any) -> dict[str, Any]:
    return {"busy": {"device": device, "time": f"{us} us", **keys}}


def loop(times: int, *do: dict[str, Any]) -> dict[str, Any]:
    return {"repeat": {"times": times, "do": list(do)}}


def runtime_of(t1: int, free: str, depth: int | None = None) -> dict[str, Any]:
    return {"dispatch": f"{t1} us", "free": free, **({"queue_depth": depth} if depth else {})}


# ---- closed forms: a loop that makes B bytes each time

B = 1000
many, some_us = st.integers(1, 40), st.integers(1, 30)


def queued(n: int, t1: int, t2: int) -> int:
    """Ops inserted and not ended when the last of n is inserted, itself included: op i at i t1, ended at t1 + i t2."""
    return n - min(n - 1, (n - 1) * t1 // t2)


@given(n=many, t1=some_us, t2=some_us)
def test_without_a_barrier_what_is_queued_piles_up(n: int, t1: int, t2: int) -> None:
    batch = busy(t2, writes={"X": f"{B} B"})
    peak = {free: memories([loop(n, batch)], runtime_of(t1, free))["d0"].peak for free in FREEING}
    assert peak["scope"] == B * max(min(n, 2), queued(n, t1, t2))  # at least the new one and the one it replaces
    assert peak["last-use"] == B * queued(n, t1, t2)
    assert peak["stream"] == B * min(n, 2)


@given(n=many, t1=some_us, t2=some_us)
def test_a_barrier_for_each_batch_keeps_memory_flat(n: int, t1: int, t2: int) -> None:
    body = loop(n, busy(t2, writes={"X": f"{B} B"}), {"wait": "X"})
    assert memories([body], runtime_of(t1, "scope"))["d0"].peak == B * min(n, 2)
    assert memories([body], runtime_of(t1, "last-use"))["d0"].peak == B


@given(n=many, back=st.integers(1, 5), t1=some_us)
def test_waiting_for_the_batch_some_iterations_ago_allows_as_many_at_once(n: int, back: int, t1: int) -> None:
    body = loop(n, {"wait": {"name": "step", "back": back}}, busy(10**6, name="step", writes={"X": f"{B} B"}))
    assert memories([body], runtime_of(t1, "scope"))["d0"].peak == B * max(min(n, 2), min(n, back))


# ---- what counts


def test_an_update_keeps_its_buffer_and_the_first_may_make_it() -> None:
    body = loop(9, busy(1, updates={"w": "5 kB"}), busy(1, updates="w"), busy(1, updates="never made"))
    for free in FREEING:
        found = memories([body], {"free": free})["d0"]
        assert (found.peak, found.allocations[0].count) == (5000, 1)


def test_a_name_given_to_something_else_lets_go() -> None:
    found = memories([busy(1, writes={"x": "5 kB"}), busy(1, "d1", writes="x"), busy(1, "d1")], {"dispatch": "9 us"})["d0"]
    assert found.taken.tolist() == [5000, 5000, 5000, 0]
    assert found.time.tolist() == [9 * US, 9 * US, 18 * US, 18 * US]


def test_the_last_buffer_of_a_name_stays_and_with_last_use_only_a_result_does() -> None:
    program = [busy(1, writes={"x": "5 kB"}), busy(1, reads="x", writes={"y": "7 kB"})]
    assert {free: memories(program, {"free": free})["d0"].taken[-1] for free in FREEING} == {
        "scope": 12000,
        "stream": 12000,
        "last-use": 7000,
    }


def test_an_op_in_pieces_uses_what_it_replaces_to_its_end() -> None:
    first = {"compute": {"device": "gpu", "flop": "9 GFLOP", "pieces": 9, "writes": {"x": "1 MB"}}}
    second = {"compute": {"device": "gpu", "flop": "9 GFLOP", "pieces": 9, "reads": "x", "writes": {"x": "1 MB"}}}
    found = memories([first, second], None)["gpu"]
    assert found.peak == 2_000_000
    begin, end = found.time[2], found.time[-1]
    assert found.taken.tolist() == [10**6, 10**6, 2 * 10**6, 2 * 10**6, 10**6, 10**6]
    assert [int(begin), int(end)] == pytest.approx([10**12, 2 * 10**12], rel=1e-9)


@pytest.mark.parametrize(
    ("statement", "device", "size"),
    [
        ({"matmul": {"device": "gpu", "m": 10, "n": 20, "k": 3, "batch": 4, "dtype": "fp32", "writes": "y"}}, "gpu", 3200),
        ({"elementwise": {"device": "gpu", "shape": [10, 10], "inputs": 3, "writes": "y"}}, "gpu", 400),
        ({"random": {"device": "cpu", "count": 1000, "writes": "y"}}, "cpu", 4000),
        ({"reduce": {"device": "gpu", "count": 1e6, "writes": ["y", "z"]}}, "gpu", 8),
        ({"copy": {"from": "gpu", "to": "cpu", "bytes": "1 MB", "writes": "y"}}, "cpu", 10**6),
        ({"read": {"from": "disk", "bytes": "1 kB", "times": 10, "writes": "y"}}, "cpu", 10_000),
        ({"send": {"from": "cpu", "to": "gpu", "bytes": "1 kB", "writes": "y"}}, "gpu", 1000),
        ({"busy": {"device": "gpu", "time": "1 s", "writes": {"y": {"shape": [1024, 512], "dtype": "fp16"}}}}, "gpu", 1 << 20),
        ({"busy": {"device": "gpu", "time": "1 s", "writes": {"y": "2 MB", "z": "3 B"}}}, "gpu", 2_000_003),
        ({"matmul": {"device": "gpu", "m": 10, "n": 20, "k": 3, "writes": {"y": "7 B"}}}, "gpu", 7),
        ({"elementwise": {"device": "gpu", "shape": 3, "dtype": "fp4", "writes": "y"}}, "gpu", 2),
    ],
)
def test_a_value_is_as_large_as_the_op_makes_it_unless_the_file_says(statement: dict[str, Any], device: str, size: int) -> None:
    assert {name: use.peak for name, use in memories([statement], None).items()} == {device: size}


def test_an_array_that_the_program_keeps_lies_in_the_host() -> None:
    program = [
        busy(1, "gpu", writes={"y": "1 MB"}),
        {"asnumpy": {"reads": "y", "writes": "a"}},
        {"asnumpy": {"reads": "a", "writes": "b"}},
    ]
    for runtime in (None, {"dispatch": "1 us"}):
        assert {name: use.peak for name, use in memories(program, runtime).items()} == {"cpu": 2 * 10**6, "gpu": 10**6}


@pytest.mark.parametrize("free", FREEING)
def test_an_array_that_the_program_shares_takes_nothing_and_what_its_name_meant_goes(free: str) -> None:
    program = [
        busy(1, "cpu", writes={"a": "8 MB"}),
        busy(1, "cpu", writes={"y": "1 MB"}),
        {"asnumpy": {"reads": "y", "writes": "a"}},
    ]
    runtime = {"dispatch": "1 us", "free": free, "converts": "share"}
    found = memories([*program, busy(1, "cpu", reads=["a"], updates=["y"])], runtime)["cpu"]
    assert found.peak <= 9 * 10**6
    assert int(found.taken[-1]) == 10**6


def test_values_of_unknown_size_take_nothing() -> None:
    assert memories([busy(1, "gpu", writes="y"), {"write": {"to": "disk", "bytes": "1 MB", "writes": "file"}}], None) == {}


def test_what_fusing_leaves_out_takes_no_memory() -> None:
    body = [
        {"elementwise": {"name": f"o{i}", "device": "gpu", "count": 1000, "reads": f"v{i}", "writes": f"v{i + 1}"}}
        for i in range(4)
    ]
    runtime = {"call": "1 us", "fuse": "elementwise"}
    assert memories([{"call": {"do": body}}], runtime)["gpu"].peak == 4000
    assert memories([{"call": {"do": body}}], {"call": "1 us"})["gpu"].peak == 8000  # given back at its last use
    assert memories([{"call": {"do": body}}], {"dispatch": "1 us"})["gpu"].peak == 16000


@pytest.mark.parametrize("size", ["3", "{shape: [3], dtyp: fp32}", "2 s", "{dtype: fp32}"])
def test_a_size_that_cannot_be_read_is_a_mistake(size: str) -> None:
    with pytest.raises(SpecError):
        api.simulate(MACHINE, f"hwsim: workload/1\nprogram:\n  - busy: {{device: gpu, time: 1 s, writes: {{y: {size}}}}}\n")


# ---- any program

values = st.sampled_from("xyz")
sized = st.dictionaries(values, st.integers(1, 99).map(lambda size: f"{size} B"), max_size=2)


@st.composite
def ops(draw: st.DrawFn) -> dict[str, Any]:
    keys: dict[str, Any] = {"name": draw(st.sampled_from("abc")), "writes": draw(sized)}
    keys["reads"] = draw(st.lists(values, max_size=2, unique=True))
    keys["updates"] = draw(st.lists(values, max_size=1).filter(lambda names: not set(names) & set(keys["writes"])))
    return busy(draw(st.integers(1, 20)), draw(st.sampled_from(["d0", "d1"])), **keys)


simple = st.one_of(ops(), ops(), ops(), st.just({"wait": "all"}))
inner = st.builds(lambda times, do: loop(times, *do), st.integers(0, 3), st.lists(simple, min_size=1, max_size=3))
loops = st.builds(lambda times, do: loop(times, *do), st.integers(0, 7), st.lists(simple | inner, min_size=1, max_size=4))
bodies = st.lists(simple | loops, min_size=1, max_size=5)
runtimes = st.none() | st.builds(runtime_of, st.integers(0, 20), st.sampled_from(FREEING), st.none() | st.integers(1, 4))


def written_out(body: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for statement in body:
        repeat = statement.get("repeat")
        found += [statement] if repeat is None else written_out(repeat["do"]) * repeat["times"]
    return found


def profile(found: Mapping[str, DeviceMemory]) -> dict[str, Any]:
    return {name: (use.time.tolist(), use.taken.tolist(), use.allocations) for name, use in found.items()}


@given(bodies, runtimes)
def test_a_loop_takes_what_its_iterations_written_out_take(body: list[dict[str, Any]], runtime: dict[str, Any] | None) -> None:
    assert profile(memories(body, runtime)) == profile(memories(written_out(body), runtime))


@given(bodies, runtimes)
def test_memory_is_as_read_aloud(body: list[dict[str, Any]], runtime: dict[str, Any] | None) -> None:
    plain = [statement["busy"] for statement in written_out(body) if "busy" in statement]
    timeline = simulate(lowered(written_out(body), runtime))
    found = {use.device: (use.peak, int(use.taken[-1])) for use in memory(timeline, {})}
    assert found == {device: peak for device, peak in told(plain, timeline, runtime).items() if any(peak)}


def told(plain: list[dict[str, Any]], timeline: Timeline, runtime: dict[str, Any] | None) -> dict[str, tuple[int, int]]:
    """Peak and end per device, told directly: a list of what happens, sorted, and a running sum."""
    kinds = np.array([timeline.flat.graph.labels[label].kind for label in timeline.flat.label.tolist()], object)
    ends = timeline.end[kinds == "busy"].tolist()
    taken = timeline.start[kinds == ("busy" if runtime is None else "insert")].tolist()
    free = "last-use" if runtime is None else runtime["free"]
    live: dict[str, list[Any]] = {}  # value -> [device, bytes, when taken, ends of its users, whether read since it changed]
    happens: list[tuple[int, int, str, int]] = []  # when, in which order, where, how much

    def leave(value: str, renamed: int | None) -> None:
        device, size, begin, uses, read = live.pop(value)
        happens.append((begin, 1, device, size))
        if renamed is None:
            if free == "last-use" and read:
                happens.append((max(uses), 0, device, -size))
        elif free == "stream":
            happens.append((renamed, 2, device, -size))
        elif free == "last-use" or max(uses) > renamed:
            happens.append((max(uses), 0, device, -size))
        else:
            happens.append((renamed, 2, device, -size))

    for op, begin, end in zip(plain, taken, ends, strict=True):
        for value in {*op["reads"], *op["updates"]} & set(live):
            live[value][3].append(end)
            live[value][4] = value not in op["updates"]
        for value, text in op["writes"].items():
            if value in live:
                leave(value, begin)
            live[value] = [op["device"], int(text.split()[0]), begin, [end], False]
    for value in list(live):
        leave(value, None)
    found: dict[str, tuple[int, int]] = {}
    for device in {happen[2] for happen in happens}:
        total = peak = 0
        for _, _, _, size in sorted(event for event in happens if event[2] == device):
            total += size
            peak = max(peak, total)
        found[device] = (peak, total)
    return found


# ---- scale


def test_very_many_iterations_stay_a_few_buffers() -> None:
    do = [busy(3, "d0", writes={"x": "1 kB"}), busy(5, "d1", reads="x", writes={"y": "1 MB"}), {"wait": {"name": "a", "back": 2}}]
    do[0]["busy"]["name"] = "a"
    graph = lowered([loop(50_000, *do)], runtime_of(1, "scope", 8))
    assert len(graph.buffers) < 20
    timeline = simulate(graph)
    assert effort(lambda: memory(timeline, {})) < 8
    found = memory(timeline, {})
    assert [use.device for use in found] == ["d0", "d1"]
    assert found[1].taken[-1] == 10**6


def test_buffers_keep_their_ops_when_graphs_are_put_together() -> None:
    def flat(size: int) -> Any:
        builder = GraphBuilder()
        builder.op("nothing", time=1e-6)
        with builder.repeat(3):
            op = builder.op("a", device="gpu", time=1e-6)
        builder.buffer(
            Buffer(
                "x", "a", "gpu", size, "last-use", Mark(op.block, op.op), (Mark(op.block, op.op),) * 2, block=op.block, times=3
            )
        )
        return flatten(builder.build())

    both = concatenate([flat(1), flat(2)])
    assert [(buffer.bytes, buffer.made, buffer.block) for buffer in both.graph.buffers] == [
        (1, Mark(1, 0), 1),
        (2, Mark(3, 0), 3),
    ]


# ---- verdict and reports

HUGE = """
hwsim: workload/1
name: too much
let: {n: 30}
runtime: {dispatch: 1 us}
program:
  - busy: {name: load, device: gpu, time: 1 us, writes: {weights: 400 MB}}
  - repeat: {times: $n, do: [{busy: {name: step, device: gpu, time: 1 ms, reads: weights, writes: {activations: 50 MB}}}]}
  - wait: all
"""


def test_out_of_memory_is_a_verdict_with_amounts_and_names() -> None:
    with pytest.raises(api.OutOfMemory) as caught:
        api.simulate(MACHINE, HUGE, expect=False)
    said = "gpu needs 1.9 GB at 31.0 us and has 1 GB, over by 900 MB: "
    said += "30 x 'activations' 1.5 GB (made by 'step'), 'weights' 400 MB (made by 'load')"
    assert str(caught.value) == said
    assert caught.value.run.makespan_s == pytest.approx(0.030002, rel=1e-6)
    assert not caught.value.run.fits
    assert isinstance(caught.value, api.ExpectationFailed)


def test_what_fits_is_no_verdict_and_neither_is_a_machine_without_a_size() -> None:
    run = api.simulate(MACHINE, HUGE, set={"n": 12})
    assert (run.fits, run.memory[0].peak, run.memory[0].size) == (True, 10**9, 10**9)
    bare = json.loads(json.dumps(MACHINE))
    del bare["parts"]["gpu"]["memory"]["size"]
    assert api.simulate(bare, HUGE).memory[0].size is None
    assert "gpu peak 1.9 GB\n" in str(api.simulate(bare, HUGE))


def test_several_sockets_have_the_memory_of_all() -> None:
    machine = json.loads(json.dumps(MACHINE))
    machine["parts"]["cpu"] |= {"count": 2, "memory": {"size": "1 GB", "bandwidth": "40 GB/s"}}
    machine["links"] = []
    text = {"hwsim": "workload/1", "program": [{"random": {"device": "cpu", "count": 1e8, "writes": "x"}}]}
    [found] = api.simulate(machine, text).memory
    assert (found.peak, found.size) == (4 * 10**8, 2 * 10**9)


def test_the_command_line_says_it_and_exits_with_3(tmp_path: Path) -> None:
    machine = tmp_path / "machine.yaml"
    machine.write_text(json.dumps(MACHINE), encoding="utf-8")
    done = hwsim("simulate", machine, "-", stdin=HUGE, code=3)
    assert "gpu peak 1.9 GB of 1 GB: OUT OF MEMORY" in done.stdout
    assert done.stderr.startswith("out of memory: gpu needs 1.9 GB at 31.0 us and has 1 GB, over by 900 MB")
    fine = hwsim("simulate", machine, "-", "--set", "n=12", stdin=HUGE)
    assert "gpu peak 1 GB of 1 GB\n" in fine.stdout
    found = json.loads(hwsim("simulate", machine, "-", "--json", stdin=HUGE, code=3).stdout)["memory"]
    assert [{key: row[key] for key in ("device", "peak_bytes", "size_bytes", "at_s", "fits")} for row in found] == [
        {"device": "gpu", "peak_bytes": 1_900_000_000, "size_bytes": 10**9, "at_s": 31e-6, "fits": False}
    ]
    assert found[0]["allocations"][0] == {"value": "activations", "op": "step", "count": 30, "bytes": 1_500_000_000}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_memory_is_drawn(tmp_path: Path, suffix: str) -> None:
    machine, figure = tmp_path / "machine.yaml", tmp_path / f"memory.{suffix}"
    machine.write_text(json.dumps(MACHINE), encoding="utf-8")
    hwsim("simulate", machine, "-", "--plot", "memory", figure, stdin=HUGE, code=3)
    first = figure.read_bytes()
    assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])
    hwsim("simulate", machine, "-", "--plot", "memory", figure, stdin=HUGE, code=3)
    assert figure.read_bytes() == first
    empty = hwsim("simulate", machine, "-", "--plot", "memory", figure, stdin="hwsim: workload/1\nprogram: []\n", code=2)
    assert "no value of the run has a known size" in empty.stderr


def test_a_long_run_is_drawn_thinned_and_keeps_its_peak() -> None:
    from hwsim.views.kit.panels import POINTS, thin_points

    taken = np.arange(10 * POINTS, dtype=np.float64) % 997
    when, shown = thin_points(np.arange(10 * POINTS, dtype=np.float64), taken)
    assert len(when) <= POINTS
    assert shown.max() == taken.max()
    assert shown[-1] == taken[-1]


def test_what_a_collective_replaces_goes_with_its_last_bucket() -> None:
    """Four buckets of 10 ms behind an op of 4 ms that they read: the old gradients stay 44 ms."""
    machine = {
        "hwsim": "machine/1",
        "class": "ideal",
        "parts": {
            "gpu": {"kind": "gpu", "count": 2, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"bandwidth": "1 TB/s", "size": "1 GB"}}
        },
        "links": [{"between": ["gpu0", "gpu1"], "kind": "direct", "bandwidth": "1 GB/s"}],
    }
    do = [
        {"compute": {"name": "backward", "flop": "4 GFLOP", "pieces": 4, "writes": {"x": "1 MB"}}},
        {"allreduce": {"name": "sum", "among": "gpu*", "bytes": "40 MB", "algorithm": "ring", "overlaps": "backward",
                       "reads": "x", "writes": {"x": "2 MB"}}},
        {"wait": "sum"},
        {"busy": {"time": "5 ms"}},
    ]  # fmt: skip
    run = api.simulate(machine, {"hwsim": "workload/1", "program": {"each": "gpu*", "do": do}})
    found = next(use for use in memory(run.timeline, {}) if use.device == "gpu0")
    assert found.peak == 3_000_000
    freed = found.time[[int(taken) for taken in found.taken].index(2_000_000)] / 1e15
    assert freed == 0.044
