"""What software adds: every runtime by its closed form, compiled bodies, fusing, and values fetched by the program."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim import api
from hwsim.engine import simulate
from hwsim.functions.files import check
from hwsim.graph.opgraph import OpGraph
from hwsim.results.usage import usage
from hwsim.spec import Mistakes, SpecError, find, names, read, resolve, sources

US = 10**9  # fs
MACHINE = api.load_machine("""
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 64, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 40 GB/s}}
  gpu: {kind: gpu, flop: {fp32: 1000 TFLOP/s}, launch: 5 us, memory: {size: 16 GB, bandwidth: 1 TB/s}}
  d: {kind: switch, count: 2}
links: [{between: [cpu, gpu], kind: direct, bandwidth: 10 GB/s, latency: 1 us}]
""")
few = st.integers(1, 6)
some_us = st.integers(1, 50)


def lowered(program: object, runtime: dict[str, Any] | None) -> OpGraph:
    tree = {"hwsim": "workload/1", "program": program, **({} if runtime is None else {"runtime": runtime})}
    return api.prepare(MACHINE, tree).graph


def makespan(program: object, runtime: dict[str, Any] | None) -> int:
    return simulate(lowered(program, runtime)).makespan_fs


def us(**times: int) -> dict[str, Any]:
    return {("return" if name == "back" else name): f"{time} us" for name, time in times.items()}


def busy(time: int, device: str = "d0", **keys: Any) -> dict[str, Any]:
    return {"busy": {"device": device, "time": f"{time} us", **keys}}


def loop(times: int, *do: dict[str, Any]) -> dict[str, Any]:
    return {"repeat": {"times": times, "do": list(do)}}


def call(*do: dict[str, Any], name: str = "net") -> dict[str, Any]:
    return {"call": {"name": name, "do": list(do)}}


# ---- imperative and compiled


@given(n=few, k=few, t1=some_us, t2=some_us, t3=some_us, c=some_us, p=some_us, first=st.integers(0, 50), depth=few | st.none())
def test_a_compiled_body_costs_one_call_and_an_imperative_one_a_dispatch_for_each_op(
    n: int, k: int, t1: int, t2: int, t3: int, c: int, p: int, first: int, depth: int | None
) -> None:
    program = [loop(n, call(*(busy(t2, name=f"op {i}") for i in range(k)))), {"wait": "all"}]
    runtime = us(dispatch=t1, back=t3)
    one_by_one = t1 + n * k * t2 if t2 >= t1 else n * k * t1 + t2
    assert makespan(program, runtime) == (one_by_one + t3) * US
    deep = {"queue_depth": depth} if depth else {}
    compiled = makespan(program, {**runtime, **us(call=c, per_op=p, compile=first), **deep})
    work = k * (p + t2)
    if depth is None:
        assert compiled == (first + (c + n * work if work >= c else n * c + work) + t3) * US
    else:  # the thread inserts op i when op i - depth has ended, and only then goes on to the next call
        assert compiled == (bounded(n, k, c, p + t2, first, depth) + t3) * US


def bounded(n: int, k: int, call: int, op: int, first: int, depth: int) -> int:
    """Told directly: clocks of the thread and of the queue."""
    host, ends = first, [0]
    for _ in range(n):
        host += call
        for _ in range(k):
            host = max(host, ends[-depth] if len(ends) > depth else 0)
            ends.append(max(host, ends[-1]) + op)
    return max(ends[-1], host)


def test_the_same_file_runs_compiled_imperatively_and_without_software() -> None:
    program = [loop(100, call(busy(3, name="a"), busy(4, "d1", name="b"))), {"wait": "all"}]
    inline = [loop(100, busy(3, name="a"), busy(4, "d1", name="b")), {"wait": "all"}]
    for runtime in (None, us(dispatch=2, back=1)):
        assert makespan(program, runtime) == makespan(inline, runtime)
    assert makespan(program, {**us(dispatch=2, back=1), "call": "0 s"}) == 401 * US  # one return


@given(n=st.integers(1, 5), sites=st.integers(1, 3))
def test_each_call_of_the_program_is_compiled_once(n: int, sites: int) -> None:
    body = [call(busy(1), name=f"net {i}") for i in range(sites)]
    slow, fast = (makespan([loop(n, *body)], us(call=2, compile=compile_us)) for compile_us in (70, 0))
    assert slow - fast == sites * 70 * US


def test_compiling_and_calling_are_told_apart_by_name() -> None:
    graph = lowered([loop(2, call(busy(1), name="net"))], us(call=2, compile=9))
    assert {label.name for label in graph.labels if label.kind in ("compile", "call")} == {"compiling net", "net"}


def test_a_million_calls_stay_small() -> None:
    graph = lowered([loop(10**6, call(busy(1, name="a"), busy(2, name="b")))], {**us(call=2, compile=9), "queue_depth": 3})
    assert graph.total >= 5 * 10**6
    assert sum(len(block) for block in graph.blocks) < 30


def test_repeats_and_calls_may_stand_in_each_other() -> None:
    program = [call(loop(1000, busy(3)), call(busy(5), name="inner"))]
    assert makespan(program, us(call=7, per_op=1)) == (7 + 1000 * 4 + 6) * US


def test_every_program_of_each_compiles_for_itself() -> None:
    program = {"each": "d*", "do": [loop(3, call(busy(10, "$self")))]}
    assert makespan(program, us(call=2, compile=50)) == (50 + 2 + 30) * US


# ---- who blocks


@given(n=few, t1=some_us, t2=some_us, t3=some_us)
def test_the_cpu_blocks_and_the_gpu_does_not(n: int, t1: int, t2: int, t3: int) -> None:
    free = t1 + n * t2 if t2 >= t1 else n * t1 + t2
    for device, blocks, blocked in (
        ("cpu", "none", False),
        ("cpu", "cpu", True),
        ("cpu", "all", True),
        ("gpu", "none", False),
        ("gpu", "cpu", False),
        ("gpu", "all", True),
    ):
        runtime = {**us(dispatch=t1, back=t3), "blocks": blocks}
        expected = n * (t1 + t2 + t3) if blocked else free
        assert makespan([loop(n, busy(t2, device))], runtime) == expected * US


def test_a_copy_into_host_memory_blocks_where_the_cpu_does() -> None:
    runtime = {**us(dispatch=1, back=2), "blocks": "cpu"}
    out, back = ({"copy": {"from": a, "to": b, "bytes": "100 kB"}} for a, b in (("gpu", "cpu"), ("cpu", "gpu")))
    assert makespan([out, busy(1, "d0")], runtime) == (1 + 11 + 2 + 1 + 1 + 2) * US
    assert makespan([back, busy(1, "d0")], runtime) == (1 + 11) * US


def test_a_call_as_a_whole_waits_for_its_blocking_ops() -> None:
    runtime = {**us(call=5, back=2), "blocks": "cpu"}
    assert makespan([loop(4, call(busy(3, "cpu"), busy(4, "cpu")))], runtime) == 4 * (5 + 7 + 2) * US
    assert makespan([loop(4, call(busy(3, "gpu"), busy(4, "gpu")))], runtime) == (5 + 4 * 7) * US


# ---- fusing


def pointwise(name: str, reads: object, writes: object = (), **keys: Any) -> dict[str, Any]:
    return {"elementwise": {"name": name, "device": "gpu", "count": 1e6, "reads": reads, "writes": writes, **keys}}


def traffic(program: object, runtime: dict[str, Any] | None) -> tuple[float, int]:
    """Arrays of a million fp32 numbers moved by the GPU's memory, and ops that did it."""
    timeline = simulate(lowered(program, runtime))
    moved = next(row.moved for row in usage(timeline) if row.capacity == "gpu.memory")
    kinds = [timeline.flat.graph.labels[label].kind for label in timeline.flat.label.tolist()]
    return moved / 4e6, kinds.count("elementwise")


FUSING = {"call": "1 us", "fuse": "elementwise"}
CHAIN = [pointwise("a", "x", "y"), pointwise("b", "y", "z"), pointwise("c", ["z", "x"], "out", inputs=2)]


def test_a_fused_chain_reads_its_inputs_and_writes_its_result() -> None:
    assert traffic([call(*CHAIN)], FUSING) == (2, 1)  # x, which is read once, and out
    assert traffic([call(*CHAIN)], {"call": "1 us"}) == (7, 3)
    assert traffic(CHAIN, FUSING) == (7, 3)
    assert traffic([call(*CHAIN)], {"dispatch": "1 us", "fuse": "elementwise"}) == (7, 3)


@given(st.integers(1, 9), st.integers(1, 4))
def test_a_chain_of_n_ops_moves_two_arrays_and_starts_one_kernel(n: int, times: int) -> None:
    chain = [pointwise(f"op {i}", f"v{i}", f"v{i + 1}") for i in range(n)]
    assert traffic([loop(times, call(*chain))], FUSING) == (2 * times, times)
    timeline = simulate(lowered([call(*chain)], FUSING))
    assert timeline.makespan_fs == (1 + 5 + 8) * US  # call, one launch, 8 MB at 1 TB/s


@pytest.mark.parametrize(
    ("elsewhere", "arrays"),
    [
        ([pointwise("d", "y")], 2 + 1 + 2),  # y is read outside: it is written after all
        ([{"wait": "z"}], 2 + 1),
        ([{"asnumpy": "z"}], 2 + 1 + 1),  # and copied
        ([pointwise("d", "out")], 2 + 2),
        ([pointwise("y", "other")], 2 + 2),  # a name of an op, not of a value
    ],
)
def test_what_somebody_else_uses_is_written(elsewhere: list[dict[str, Any]], arrays: int) -> None:
    assert traffic([call(*CHAIN), *elsewhere], FUSING)[0] == pytest.approx(arrays)


def test_updates_in_place_stay_updates() -> None:
    ops = [{"elementwise": {"name": n, "device": "gpu", "count": 1e6, "updates": "x"}} for n in "ab"]
    assert traffic([call(*ops)], FUSING) == (2, 1)
    assert traffic([loop(3, call(*ops))], FUSING) == (6, 3)


@pytest.mark.parametrize(
    "other",
    [
        pointwise("b", "y", "z", count=2e6),
        pointwise("b", "y", "z", dtype="fp16"),
        pointwise("b", "other", "z"),
        pointwise("b", "y", "z", queue="second"),
        {"elementwise": {"name": "b", "device": "cpu", "count": 1e6, "reads": "y", "writes": "z"}},
        pointwise("b", "y", "z", after="a"),
        {"reduce": {"name": "b", "device": "gpu", "count": 1e6, "reads": "y", "writes": "z"}},
    ],
)
def test_what_does_not_fit_together_is_not_fused(other: dict[str, Any]) -> None:
    graph = lowered([call(pointwise("a", "x", "y"), other)], FUSING)
    assert not any("+" in label.name for label in graph.labels)


def test_a_fused_op_answers_to_all_its_names() -> None:
    for name in ("a", "b", "c", "out"):
        assert makespan([call(*CHAIN), {"wait": name}], {**FUSING, "return": "3 us"}) == (1 + 5 + 8 + 3) * US
    assert makespan([loop(5, call(*CHAIN), {"wait": {"name": "b", "back": 1}})], FUSING) == (1 + 5 * 13) * US


# ---- values fetched by the program


@given(n=few, t1=some_us, t2=some_us, t3=some_us, kind=st.sampled_from(["print", "item", "asnumpy"]))
def test_a_fetch_waits_for_the_value_and_copies_it_from_a_gpu(n: int, t1: int, t2: int, t3: int, kind: str) -> None:
    runtime = us(dispatch=t1, back=t3)
    on_cpu = [loop(n, busy(t2, "cpu", writes="y"), {kind: "y"})]
    assert makespan(on_cpu, runtime) == n * (t1 + t2 + t3) * US
    on_gpu = [loop(n, busy(t2, "gpu", writes={"y": "100 kB"}), {kind: {"reads": "y"}})]
    copied = 1_000_800_000 if kind == "item" else 11 * US  # 8 B or 100 kB over 10 GB/s, and 1 us
    assert makespan(on_gpu, runtime) == n * ((t1 + t2 + t3) * US + copied)
    assert makespan(on_gpu, None) == n * (t2 * US + copied)


def test_a_fetch_pays_its_return_each_time_and_a_wait_only_where_there_is_something_to_wait_for() -> None:
    runtime = us(dispatch=1, back=3)
    assert makespan([busy(5, writes="y"), {"print": "y"}, {"print": "y"}], runtime) == (1 + 5 + 3 + 3) * US
    assert makespan([busy(5, writes="y"), {"wait": "y"}, {"wait": "y"}], runtime) == (1 + 5 + 3) * US


def test_a_value_of_the_iteration_before_is_fetched_from_where_it_lies() -> None:
    body = [{"asnumpy": "y"}, busy(5, "gpu", writes={"y": "100 kB"})]
    graph = lowered([loop(10, *body)], us(dispatch=1, back=3))
    assert any(queue.name == "gpu.d2h" for queue in graph.queues)


def test_a_value_on_a_gpu_of_unknown_size_cannot_be_fetched_whole() -> None:
    with pytest.raises(SpecError, match="the size of 'y' is unknown"):
        lowered([busy(1, "gpu", writes="y"), {"asnumpy": "y"}], None)
    lowered([busy(1, "gpu", writes="y"), {"item": "y"}], None)


@pytest.mark.parametrize("statement", [{"asnumpy": "y"}, {"item": "y"}, {"wait": "y"}, {"barrier": "b"}])
def test_a_compiled_body_has_no_program_that_could_wait(statement: dict[str, Any]) -> None:
    program = [call(busy(1, writes="y"), statement)]
    with pytest.raises(SpecError, match="cannot be part of a compiled `call`"):
        lowered(program, {"call": "1 us"})
    lowered(program, {"dispatch": "1 us"})
    with pytest.raises(SpecError, match="`block` is not valid in a compiled"):
        lowered([call(busy(1, block=True))], {"call": "1 us"})


def test_a_compiled_body_prints_only_while_it_is_compiled() -> None:
    program = [loop(9, call(busy(1, writes="y"), {"print": "y"}))]
    assert makespan(program, us(call=2)) == makespan([loop(9, call(busy(1, writes="y")))], us(call=2))


# ---- the library


@pytest.mark.parametrize("name", names("runtime"))
def test_every_runtime_of_the_library_reads_and_every_number_has_a_source(name: str) -> None:
    assert check(name) == ()
    mistakes = Mistakes()
    tree = resolve(read(find("runtime", name)), mistakes, kind="runtime")
    mistakes.raise_if_any()
    known = sources(tree)
    for key in ("dispatch", "return", "queue_depth", "call", "per_op", "compile"):
        if tree.get(key) is not None:
            origin = known[key]
            assert origin.kind in {"measured", "fitted", "guess", "elsewhere"}
            assert origin.ref


def test_the_library_has_the_runtimes_of_the_text() -> None:
    of_the_text = {"numpy", "mxnet", "mxnet-hybrid", "pytorch-eager", "torchscript", "tf-eager", "tf-function", "cuda-graph"}
    assert of_the_text | {"numpy-measured"} == set(names("runtime"))


@pytest.mark.parametrize("blocking", [True, False])
def test_mxnet_repeats_the_timings_it_is_fitted_to(blocking: bool) -> None:
    add = {"elementwise": {"device": "cpu", "count": 2, "reads": "x", "writes": "y", "block": blocking}}
    run = api.simulate(
        "d2l-laptop", {"hwsim": "workload/1", "runtime": {"use": "mxnet"}, "program": [loop(1000, add), {"wait": "all"}]}
    )
    assert run.makespan_s == pytest.approx(0.0455 if blocking else 0.0420, rel=0.002)


def test_cuda_graphs_repeat_the_timings_they_are_fitted_to() -> None:
    runtime = {"use": "cuda-graph"}
    kernels = [{"busy": {"device": "gpu", "time": "2.9 us", "name": f"k{i}"}} for i in range(20)]
    waiting = [{"busy": {**kernel["busy"], "block": True}} for kernel in kernels]
    for body, expected in ((waiting, 9.6), ([*kernels, {"wait": "all"}], 3.8), ([call(*kernels), {"wait": "all"}], 3.4)):
        many, one = (makespan([loop(n, *body)], runtime) for n in (101, 1))
        assert (many - one) / 2000 / US == pytest.approx(expected, abs=0.001)


def test_a_runtime_of_the_library_is_overridden_by_what_stands_beside_it() -> None:
    program = [loop(10, busy(1))]
    assert makespan(program, {"use": "numpy", "dispatch": "9 us"}) == 10 * 10 * US
