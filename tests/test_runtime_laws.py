"""Laws of runtimes: compiling never costs, switching the runtime switches all of it, and small networks are bound by Python."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.spec import SpecError, find, names, read, tree_of
from hwsim.spec.paths import apply_set
from hwsim.ticks import femtoseconds
from hwsim.workload import Runtime

MACHINE = api.load_machine("""
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 40 GB/s}}
  gpu:
    {kind: gpu, flop: {fp32: 10 TFLOP/s}, launch: {stream: 2.6 us, graph: 1.3 us}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
links: [{between: [cpu, gpu], kind: direct, bandwidth: 10 GB/s}]
""")
PAIRS = [(read(find("runtime", name)).text("use"), name) for name in names("runtime") if read(find("runtime", name)).get("call")]
PAIRS = [(eager or "", compiled) for eager, compiled in PAIRS]  # cuda-graph has both: "" issues its kernels one by one


def runtime_of(name: str, compiled: str) -> dict[str, Any]:
    """The runtime of that name; "": the compiled one, that issues its ops one by one."""
    if name:
        return {"use": name}
    tree = read(find("runtime", compiled))
    found = {key: inner.plain() for key, inner in tree.items() if key in ("blocks", "free", "dispatch", "return", "queue_depth")}
    depth = tree.get("queue_depth")
    return found | ({"queue_depth": (depth.get("value") or depth).plain()} if depth is not None else {})


def network(kinds: list[bool], count: float, device: str) -> list[dict[str, Any]]:
    """A chain of layers: products (true) and ops on each element."""
    made: list[dict[str, Any]] = []
    for number, product in enumerate(kinds):
        keys = {"device": device, "reads": f"v{number}", "writes": f"v{number + 1}", "name": f"layer {number}"}
        made.append({"matmul": {**keys, "m": 1, "n": count, "k": 64}} if product else {"elementwise": {**keys, "count": count}})
    return made


def run(runtime: dict[str, Any], body: list[dict[str, Any]], times: int) -> api.Run:
    """Whether or not so many arrays of an eager runtime fit: how large they are is what is compared."""
    program = [{"repeat": {"times": times, "do": [{"call": {"name": "net", "do": body}}]}}, {"wait": "all"}]
    return api.simulated(MACHINE, {"hwsim": "workload/1", "runtime": runtime, "program": program})


def fs(run: api.Run) -> int:
    return run.timeline.makespan_fs


def test_every_compiling_runtime_has_an_imperative_partner() -> None:
    assert {compiled for _, compiled in PAIRS} == {"mxnet-hybrid", "torchscript", "tf-function", "cuda-graph"}


@pytest.mark.parametrize(("eager", "compiled"), PAIRS)
@settings(max_examples=12, deadline=None)
@given(
    kinds=st.lists(st.booleans(), min_size=1, max_size=6),
    count=st.sampled_from([64, 4096, 262144, 16777216]),
    device=st.sampled_from(["cpu", "gpu"]),
)
def test_compiled_is_never_slower_in_the_steady_state_and_never_takes_more_memory(
    eager: str, compiled: str, kinds: list[bool], count: int, device: str
) -> None:
    body = network(kinds, count, "gpu" if compiled == "cuda-graph" else device)
    times: dict[str, int] = {}
    peaks: dict[str, int] = {}
    for name, runtime in (("eager", runtime_of(eager, compiled)), ("compiled", {"use": compiled})):
        one, two = run(runtime, body, 20), run(runtime, body, 40)
        times[name], peaks[name] = fs(two) - fs(one), max(memory.peak for memory in two.memory)
    assert times["compiled"] <= times["eager"]
    assert peaks["compiled"] <= peaks["eager"]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(("eager", "compiled"), PAIRS)
def test_what_compiling_gains_grows_with_the_layers_and_stays_in_what_the_text_says(
    eager: str, compiled: str, device: str
) -> None:
    gains = []
    for layers in (1, 5, 200):
        body = network([True] * layers, 64, "gpu" if compiled == "cuda-graph" else device)
        runtimes = runtime_of(eager, compiled), {"use": compiled}
        took = [fs(run(runtime, body, 40)) - fs(run(runtime, body, 20)) for runtime in runtimes]
        gains.append(took[0] / took[1])
    assert 1.0 <= gains[0] <= gains[1] <= gains[2] < 6.0  # "from small percentage points to more than twice the speed"


def test_what_is_traced_away_costs_nothing_and_what_needs_a_value_is_refused() -> None:
    """A print and a branch that a parameter decides leave a compiled body, which then costs what it costs without them."""
    body = network([True, True], 64, "cpu")
    traced = [body[0], {"print": "v1"}, {"repeat": {"times": 0, "do": body}}, {"repeat": {"times": 1, "do": [body[1]]}}]
    for name in ("mxnet-hybrid", "torchscript", "tf-function"):
        assert fs(run({"use": name}, traced, 10)) == fs(run({"use": name}, body, 10))
    assert fs(run({"use": "mxnet"}, traced, 10)) > fs(run({"use": "mxnet"}, body, 10))
    for statement in ({"item": "v1"}, {"asnumpy": "v1"}, {"wait": "v1"}):
        with pytest.raises(SpecError, match="cannot be part of a compiled `call`"):
            run({"use": "mxnet-hybrid"}, [body[0], statement, body[1]], 1)
    with pytest.raises(SpecError, match="a branch that a parameter decides"):
        run({"use": "mxnet-hybrid"}, [body[0], {"if": {"reads": "v1", "do": body}}], 1)


def test_a_graph_launch_grows_with_its_nodes_and_precedes_all_of_them() -> None:
    """g + n i + the kernels, with the wait's return: a closed form from one node on, on both engines."""
    for nodes in (1, 2, 20, 200):
        program = [{"call": {"do": [{"busy": {"device": "gpu", "time": "2.9 us"}}] * nodes}}, {"wait": "all"}]
        runtime = {"call": "2 us", "issue": "0.2 us", "starts": "graph", "return": "3 us", "blocks": "cpu"}
        file = {"hwsim": "workload/1", "runtime": runtime, "program": program}
        runs = api.simulate(MACHINE, file), api.simulate(MACHINE, file, engine="simpy")
        assert {fs(found) for found in runs} == {femtoseconds(2e-6 + 0.2e-6 * nodes + 2.9e-6 * nodes + 3e-6)}


def test_a_graph_of_a_gpu_computes_nothing_on_a_cpu() -> None:
    with pytest.raises(SpecError, match="'cpu' is a cpu, but the runtime starts compiled bodies as GPU graphs"):
        run({"use": "cuda-graph"}, network([True, False], 64, "cpu"), 1)


def test_a_compiled_body_holds_what_it_makes_until_its_last_use() -> None:
    body = network([False] * 5, 1_000_000, "gpu")
    peak = {name: run({"use": name}, body, 10).memory[0].peak for name in ("pytorch-eager", "cuda-graph")}
    assert peak["pytorch-eager"] == 6 * 4_000_000
    assert peak["cuda-graph"] == 3 * 4_000_000  # two of the chain, and the result of the call before


def test_torchscript_is_a_little_faster_and_tf_function_more_than_twice_as_the_notebooks_print() -> None:
    printed = {"pytorch-eager": 0.0939, "torchscript": 0.0903, "tf-eager": 0.6138, "tf-function": 0.2578}
    for name, seconds in printed.items():
        found = api.simulate("d2l-laptop", "d2l/hybridize", set={"workload.runtime.use": name}, expect=False)
        assert found.makespan_s == pytest.approx(seconds, rel=0.005)


def test_another_runtime_replaces_the_numbers_of_the_file_and_says_so() -> None:
    file = tree_of({"hwsim": "workload/1", "runtime": {"use": "mxnet", "dispatch": "75 us"}, "program": []})
    nothing = tree_of({"hwsim": "machine/1"})
    _, changed, note = apply_set(nothing, file, "workload.runtime.use", "numpy")
    assert changed.get("runtime").plain() == {"use": "numpy"}
    assert "dispatch: 75 us" in note.text
    assert apply_set(nothing, file, "workload.runtime.use", "mxnet").workload.plain() == file.plain()
    _, chosen, _ = apply_set(nothing, file, "workload.runtime.dispatch", "9 us")
    _, both, note = apply_set(nothing, chosen, "workload.runtime.use", "numpy")
    assert both.get("runtime").plain() == {"use": "numpy", "dispatch": "9 us"}
    assert note is None


def test_each_job_gives_its_buffers_back_as_its_own_runtime_says() -> None:
    def job(runtime: dict[str, Any], device: str) -> dict[str, Any]:
        body = [{"elementwise": {"device": device, "count": 1_000_000, "writes": f"v{i}"}} for i in range(3)]
        return {"runtime": runtime, "program": [*body, {"wait": "all"}]}

    jobs = {"a": job({"dispatch": "1 us", "free": "last-use"}, "cpu"), "b": job({"dispatch": "1 us", "free": "scope"}, "gpu")}
    found = api.simulate(MACHINE, {"hwsim": "workload/1", "jobs": jobs})
    assert {memory.device: memory.peak for memory in found.memory}["gpu"] == 12_000_000
    alone = api.simulate(MACHINE, {"hwsim": "workload/1", **jobs["b"]})
    assert alone.memory[0].peak == 12_000_000


def test_what_never_runs_asks_nothing_of_the_machine() -> None:
    program = [{"repeat": {"times": 0, "do": [{"write": {"to": "disk", "bytes": "1 MB"}}]}}]
    assert api.simulate(MACHINE, {"hwsim": "workload/1", "program": program}).makespan_s == 0


def test_a_layer_costs_its_own_dispatch_inside_a_call_alone() -> None:
    runtime = {"dispatch": "1 us", "layer": "10 us"}
    op = {"busy": {"device": "cpu", "time": "0 s"}}
    assert fs(run(runtime, [op, op], 3)) == 60 * 10**9
    outside = {"hwsim": "workload/1", "runtime": runtime, "program": [op, op, {"wait": "all"}]}
    assert fs(api.simulate(MACHINE, outside)) == 2 * 10**9
    assert Runtime(dispatch=1e-6).layer is None
