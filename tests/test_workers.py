"""Workers of a runtime start ops by their dependences: an oracle, bounds of list scheduling, and the book's experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.engine import Which
from hwsim.machine import Machine
from hwsim.spec import SpecError
from hwsim.ticks import femtoseconds

US = 10**9
ENGINES: Final[tuple[Which, ...]] = ("auto", "simpy")
MACHINE = api.load_machine("""
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 4, flop: {fp32: 100 GFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
  gpu: {kind: gpu, flop: {fp32: 10 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
links: [{between: [cpu, gpu], kind: direct, bandwidth: 10 GB/s}]
""")
WIDE = api.load_machine("""
hwsim: machine/1
class: ideal
parts: {cpu: {kind: cpu, cores: 4096, flop: {fp32: 100 GFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}}
""")  # ops of a fixed time use one core, so that they never compete
Statements = list[Any]  # mappings of one key
MANY = 1000
values = st.sampled_from("abcd")
lists = st.lists(values, max_size=2, unique=True)


@st.composite
def ops(draw: st.DrawFn) -> dict[str, Any]:
    """An op of a fixed time."""
    role = draw(st.sampled_from(["writes", "updates", "none"]))
    keys: dict[str, Any] = {"device": "cpu", "time": f"{draw(st.integers(1, 50))} us", "name": draw(st.sampled_from("uvw"))}
    keys["reads"] = draw(lists)
    if role != "none":
        keys[role] = draw(lists)
    if draw(st.booleans()):
        keys["block"] = draw(st.booleans())
    return {"busy": keys}


bodies = st.lists(ops(), min_size=1, max_size=6)


class Dataflow:
    """A second telling of the rules, with clocks instead of a graph and without a limit on workers (times in us)."""

    def __init__(self, dispatch: int) -> None:
        self.dispatch, self.host, self.last, self.work = dispatch, 0, 0, 0
        self.written: dict[str, int] = {}
        self.read: dict[str, list[int]] = {}

    def run(self, body: Sequence[Mapping[str, Any]]) -> None:
        for statement in body:
            [(kind, keys)] = statement.items()
            if kind == "repeat":
                for _ in range(keys["times"]):
                    self.run(keys["do"])
            elif kind == "wait":
                self.host = max(self.host, self.last)
            else:
                self.issue(keys)

    def issue(self, op: Mapping[str, Any]) -> None:
        self.host += self.dispatch
        time = int(op["time"].removesuffix(" us"))
        updates = op.get("updates", [])
        needs = [self.written.get(value, 0) for value in (*op["reads"], *updates)]
        needs += [end for value in updates for end in self.read.get(value, [])]
        end = max([self.host, *needs]) + time
        for value in op["reads"]:
            self.read.setdefault(value, []).append(end)
        for value in (*op.get("writes", []), *updates):
            self.written[value], self.read[value] = end, []
        self.last, self.work = max(self.last, end), self.work + time
        if op.get("block"):
            self.host = max(self.host, end)


def makespan(program: Statements, workers: dict[str, Any] | None, dispatch: int = 0, engine: Which = "auto", **more: Any) -> int:
    runtime = {"dispatch": f"{dispatch} us", **({} if workers is None else {"workers": workers}), **more}
    return on(WIDE, runtime, program, engine)


def on(machine: Machine, runtime: dict[str, Any], program: Statements, engine: Which = "auto") -> int:
    run = api.simulate(machine, {"hwsim": "workload/1", "runtime": runtime, "program": program}, engine=engine)
    return run.timeline.makespan_fs


def wrapped(before: Statements, body: Statements, times: int) -> Statements:
    return [*before, {"repeat": {"times": times, "do": body}}, {"wait": "all"}]


@settings(max_examples=60, deadline=None)
@given(before=st.lists(ops(), max_size=2), body=bodies, times=st.integers(1, 12), dispatch=st.integers(0, 5))
def test_enough_workers_start_every_op_once_its_inputs_are_ready(
    before: Statements, body: Statements, times: int, dispatch: int
) -> None:
    program = wrapped(before, body, times)
    oracle = Dataflow(dispatch)
    oracle.run(program)
    expected = max(oracle.host, oracle.last) * US
    assert {makespan(program, {"cpu": MANY}, dispatch, engine) for engine in ENGINES} == {expected}


@settings(max_examples=40, deadline=None)
@given(body=bodies, times=st.integers(1, 12), workers=st.integers(1, 4))
def test_list_scheduling_keeps_its_bounds(body: Statements, times: int, workers: int) -> None:
    """max(path, work / k) <= time <= work / k + (1 - 1 / k) path for k workers and no waits (Graham 1969)."""
    free = [{"busy": {key: value for key, value in op["busy"].items() if key != "block"}} for op in body]
    program = wrapped([], free, times)
    oracle = Dataflow(0)
    oracle.run(program)
    found = {makespan(program, {"cpu": workers}, 0, engine) for engine in ENGINES}
    assert len(found) == 1
    path, work = oracle.last * US, oracle.work * US
    assert max(path, work / workers) <= found.pop() <= work / workers + (1 - 1 / workers) * path + 1


@settings(max_examples=30, deadline=None)
@given(body=bodies, times=st.integers(1, 6), dispatch=st.integers(0, 5))
def test_ops_that_name_their_queues_run_as_without_workers(body: Statements, times: int, dispatch: int) -> None:
    named = [{"busy": {**op["busy"], "queue": f"s{number % 2}"}} for number, op in enumerate(body)]
    program = wrapped([], named, times)
    assert makespan(program, {"cpu": 2}, dispatch) == makespan(program, None, dispatch)


@settings(max_examples=30, deadline=None)
@given(times=st.lists(st.integers(1, 50), min_size=1, max_size=6), rounds=st.integers(1, 6), dispatch=st.integers(0, 5))
def test_a_chain_is_as_fast_with_any_workers_as_in_a_queue(times: list[int], rounds: int, dispatch: int) -> None:
    body = [{"busy": {"device": "cpu", "time": f"{time} us", "reads": "a", "writes": "a"}} for time in times]
    program = wrapped([], body, rounds)
    found = {makespan(program, workers, dispatch) for workers in (None, {"cpu": 1}, {"cpu": 2}, {"cpu": MANY})}
    assert len(found) == 1


def test_a_wait_for_one_value_does_not_wait_for_the_others_and_no_op_is_awaited_twice() -> None:
    slow = {"busy": {"device": "cpu", "time": "100 us", "writes": "a"}}
    fast = {"busy": {"device": "cpu", "time": "10 us", "writes": "b"}}
    more: dict[str, Any] = {"return": "3 us"}
    assert makespan([slow, fast, {"wait": "b"}, {**fast}, {"wait": "all"}], {"cpu": 3}, 0, **more) == 103 * US
    host = {"busy": {"device": "cpu", "time": "1 us", "writes": "c"}}
    chain = [slow, {"wait": "a"}, {"wait": "a"}, host, {"wait": "c"}, {"wait": "all"}]
    assert makespan(chain, {"cpu": 3}, 0, **more) == (100 + 3 + 1 + 3) * US
    assert makespan(chain, None, 0, **more) == (100 + 3 + 1 + 3) * US


def test_an_update_waits_for_every_reader_that_ran_beside_the_others() -> None:
    readers = [{"busy": {"device": "cpu", "time": f"{time} us", "reads": "a"}} for time in (50, 10, 70, 20)]
    update = {"busy": {"device": "cpu", "time": "5 us", "updates": "a"}}
    assert makespan([*readers, update, {"wait": "all"}], {"cpu": MANY}) == 75 * US


def test_ten_products_of_one_core_take_three_rounds_on_four_workers_and_five_on_two() -> None:
    """The first exercise of d2l 13.3: 2 x 1000^3 FLOP at a quarter of the CPU's 100 GFLOP/s are 80 ms."""
    program = [
        {"repeat": {"times": 10, "do": [{"matmul": {"device": "cpu", "m": 1000, "n": 1000, "k": 1000, "cores": 1}}]}},
        {"wait": "all"},
    ]
    rounds = {None: 10, 1: 10, 2: 5, 4: 3, "cores": 3, 5: 2.5, 10: 2.5}  # from five on, they share the four cores
    for workers, expected in rounds.items():
        runtime = {} if workers is None else {"workers": {"cpu": workers}}
        for engine in ENGINES:
            assert on(MACHINE, runtime, program, engine) == pytest.approx(expected * femtoseconds(0.08), rel=1e-9)


def test_copies_pass_each_other_only_with_workers_of_their_own() -> None:
    program = [
        {"busy": {"device": "gpu", "time": "1 ms", "writes": "late"}},
        {"copy": {"from": "gpu", "to": "cpu", "bytes": "1 MB", "reads": "late"}},
        {"copy": {"from": "gpu", "to": "cpu", "bytes": "8 MB", "reads": "ready"}},
        {"wait": "all"},
    ]
    slow, fast = (on(MACHINE, {"workers": workers}, program) for workers in ({"gpu": 2}, {"gpu": 2, "copy": 1}))
    assert slow == pytest.approx(femtoseconds(1e-3 + 9e-4), rel=0.02)
    assert fast == pytest.approx(femtoseconds(1e-3 + 1e-4), rel=0.02)


def test_branches_of_a_compiled_body_run_beside_each_other_and_the_call_waits_for_all_of_them() -> None:
    """TensorFlow waits for the results of a function, not after each of its ops; TorchScript's interpreter does."""
    branch = [{"busy": {"device": "cpu", "time": f"{time} us", "reads": "x", "writes": f"y{time}"}} for time in (40, 30, 20)]
    body = [*branch, {"busy": {"device": "cpu", "time": "5 us", "reads": ["y40", "y30", "y20"], "writes": "z"}}]
    program = [{"repeat": {"times": 4, "do": [{"call": {"do": body}}]}}, {"wait": "all"}]
    more: dict[str, Any] = {"call": "1 us", "blocks": "all"}
    assert makespan(program, {"cpu": 3}, 0, **more) == 4 * 46 * US
    assert makespan(program, {"cpu": 3}, 0, issue="1 ns", **more) == 4 * (46 * US + 10**6)
    assert makespan(program, None, 0, **more) == 4 * 96 * US


def test_a_worker_count_that_is_none_is_refused() -> None:
    with pytest.raises(SpecError, match="workers"):
        makespan([{"wait": "all"}], {"gpus": 2})
    with pytest.raises(SpecError):
        makespan([{"wait": "all"}], {"cpu": "all"})


sizes = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(
    megabytes=sizes,
    times=st.integers(1, 8),
    free=st.sampled_from(["scope", "last-use"]),
    workers=st.sampled_from([{}, {"cpu": 2}]),
)
def test_buffers_of_running_ops_never_take_more_than_those_of_issued_ops(
    megabytes: list[int], times: int, free: str, workers: dict[str, int]
) -> None:
    body = [
        {"busy": {"device": "cpu", "time": "1 ms", "reads": f"v{number}", "writes": {f"v{number + 1}": f"{size} MB"}}}
        for number, size in enumerate(megabytes)
    ]
    peaks, spans = [], set()
    for allocate in ("run", "issue"):
        for engine in ENGINES:
            runtime = {"dispatch": "1 us", "allocate": allocate, "free": free, "workers": workers}
            file = {"hwsim": "workload/1", "runtime": runtime, "program": wrapped([], body, times)}
            run = api.simulate(WIDE, file, engine=engine)
            peaks.append(run.memory[0].peak)
            spans.add(run.timeline.makespan_fs)
    assert peaks[0] == peaks[1] <= peaks[2] == peaks[3]
    assert max(megabytes) * 1e6 <= peaks[0]
    assert len(spans) == 1


@pytest.mark.parametrize("count", [1, 2, 10])
def test_queued_ops_hold_a_buffer_each_only_if_it_is_allocated_when_they_are_issued(count: int) -> None:
    program = wrapped([], [{"busy": {"device": "cpu", "time": "1 ms", "writes": {"x": "3 MB"}}}], count)
    for allocate, expected in (("issue", count), ("run", 1)):
        runtime = {"dispatch": "1 us", "allocate": allocate, "free": "last-use"}
        run = api.simulate(WIDE, {"hwsim": "workload/1", "runtime": runtime, "program": program})
        assert run.memory[0].peak == expected * 3_000_000


def test_a_buffer_that_stream_order_reuses_cannot_be_allocated_later() -> None:
    with pytest.raises(SpecError, match="requires `allocate: issue`"):
        makespan([{"wait": "all"}], None, 0, allocate="run", free="stream")


def test_the_books_process_grows_in_the_right_order_and_size() -> None:
    """21.6 MB with a barrier, after a forward pass; 3.2 MB more without; gigabytes if buffers were allocated at issue."""

    def peak(**changed: object) -> int:
        return api.simulate("d2l-laptop", "d2l/queue-memory", set={"batches": 20, **changed}, expect=False).memory[0].peak

    forward, barrier, free = peak(train=0, batches=1, barrier=0), peak(), peak(barrier=0)
    assert 0.5 < (barrier - forward) / 21.576e6 < 2
    assert free - barrier <= 3.248e6
    assert peak(barrier=0, allocate="issue") > 10 * barrier


# ---- beside other features ----

NODES = api.load_machine("""
hwsim: machine/1
class: ideal
parts:
  node:
    kind: machine
    count: 3
    parts: {cpu: {kind: cpu, cores: 4, flop: {fp32: 100 GFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}}
""")


def products(device: str, times: int = 6) -> dict[str, Any]:
    """Two independent matmuls of one core and a third that reads both, several times, by two workers of each CPU."""
    one = {"device": device, "m": 500, "n": 500, "k": 500, "cores": 1}
    body = [
        {"matmul": {**one, "name": "p", "writes": "a"}},
        {"matmul": {**one, "name": "q", "writes": "b"}},
        {"matmul": {**one, "name": "s", "reads": ["a", "b"], "writes": "c"}},
    ]
    return {"runtime": {"dispatch": "1 us", "workers": {"cpu": 2}}, "program": wrapped([], body, times)}


def seen(workload: Mapping[str, Any], engine: Which = "auto") -> int:
    return api.simulate(NODES, {"hwsim": "workload/1", **workload}, engine=engine).timeline.makespan_fs


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("node", [0, 2])
def test_workers_meet_jobs_and_events(engine: Which, node: int) -> None:
    device = f"node{node}.cpu"
    own = products(device)
    alone = seen(own, engine)
    assert alone == seen(products("node1.cpu"))  # the same on every node
    assert seen({**own, "events": [{"part": device, "speed": "100 %", "at": "1 ms", "for": "1 ms"}]}, engine) == alone
    idle = {"program": [{"busy": {"device": device, "time": "0 s"}}]}
    assert seen({"jobs": {"a": own, "b": products("node1.cpu", 1)}}, engine) == alone  # on another node
    assert seen({"jobs": {"a": own, "b": idle}}, engine) == alone  # of nothing
    half = seen({**own, "events": [{"part": device, "speed": "50 %", "at": "0 s"}]}, engine)
    assert half == pytest.approx(2 * alone, rel=0.01)  # two cores of four, each at half the speed
    late = seen({**own, "events": [{"part": device, "speed": "50 %", "at": f"{alone / 2e15} s"}]}, engine)
    assert late == pytest.approx(1.5 * alone, rel=0.01)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_front_end_issues_its_last_op_before_the_workers_have_run_it(engine: Which) -> None:
    body = [{"busy": {"device": "cpu", "time": "1 ms", "writes": "a"}}, {"busy": {"device": "cpu", "time": "1 ms", "reads": "a"}}]
    for workers in ({}, {"cpu": 1}, {"cpu": 3}):
        file = {"hwsim": "workload/1", "runtime": {"dispatch": "1 us", "workers": workers}, "program": wrapped([], body, 10)}
        assert api.simulate(WIDE, file, engine=engine).issued_s == pytest.approx(20e-6)


def test_a_runtime_that_no_program_of_its_job_uses_is_told() -> None:
    runtime = {"dispatch": "1 us", "workers": {"cpu": 2}}
    idle = {"pipeline": {"batches": 2, "stages": [{"busy": {"device": "node1.cpu", "time": "1 ms"}}]}}
    for jobs, told in (
        ({"a": {**products("node0.cpu"), "runtime": runtime}, "b": idle}, []),
        ({"a": {**idle, "runtime": runtime}}, ["a"]),
    ):
        warnings = api.simulate(NODES, {"hwsim": "workload/1", "jobs": jobs}).warnings
        assert [warning.text for warning in warnings] == [
            f"`runtime` has no effect: the job {name} has no program that uses it" for name in told
        ]
