"""Programs mean what the documentation says: against a second, direct interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.api import load_machine, prepare
from hwsim.engine import simulate
from hwsim.graph.opgraph import PAIRED, OpGraph
from hwsim.machine import Machine
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError, Tree, read_text, tree_of
from hwsim.workload.statements import Issue, PlacedOp, Repeat, WaitStatement
from tests.workload_oracle import Statements, interpret, names

US = 10**9  # fs
MACHINE = """
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, cores: 64, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 40 GB/s}}
  d: {kind: switch, count: 3}
"""


THE_MACHINE = load_machine(MACHINE)


def lowered(tree: Tree, machine: Machine = THE_MACHINE) -> OpGraph:
    return prepare(machine, tree).graph


def written(body: Statements) -> list[dict[str, Any]]:
    """As in a file: times in us."""
    found: list[dict[str, Any]] = []
    for statement in body:
        [(kind, keys)] = statement.items()
        if kind == "repeat":
            found.append({"repeat": {"times": keys["times"], "do": written(keys["do"])}})
        elif kind == "busy":
            found.append({"busy": {**{key: word for key, word in keys.items() if key != "fs"}, "time": f"{keys['fs'] // US} us"}})
        else:
            found.append(dict(statement))
    return found


def workload_of(programs: Mapping[str, Statements], runtime: Mapping[str, int] | None) -> Tree:
    tree: dict[str, Any] = {"hwsim": "workload/1"}
    if list(programs) == ["main"]:
        tree["program"] = written(programs["main"])
    else:
        tree["programs"] = {name: written(body) for name, body in programs.items()}
    if runtime is not None:
        tree["runtime"] = {key: time if key == "queue_depth" else f"{time // US} us" for key, time in runtime.items()}
    return tree_of(tree)


def ends_of(timeline: Timeline) -> dict[str, list[tuple[str, int]]]:
    """Ends of the ops of every program, in order of issue."""
    found: dict[str, list[tuple[str, int]]] = {}
    labels = timeline.flat.graph.labels
    for label, end in zip(timeline.flat.label.tolist(), timeline.end.tolist(), strict=True):
        if labels[label].kind == "busy":
            found.setdefault(labels[label].program, []).append((labels[label].name, end))
    return found


def agree(programs: Mapping[str, Statements], runtime: Mapping[str, int] | None) -> OpGraph:
    graph = lowered(workload_of(programs, runtime))
    timeline = simulate(graph)
    makespan, ends = interpret(programs, runtime)
    assert ends_of(timeline) == {name: log for name, log in ends.items() if log}
    assert timeline.makespan_fs == makespan
    return graph


def some(names: str, most: int = 2) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), min_size=1, max_size=most, unique=True)


@st.composite
def ops(draw: st.DrawFn) -> dict[str, Any]:
    """An op that reads, makes or changes something."""
    keys: dict[str, Any] = {
        "name": draw(st.sampled_from("abc")),
        "device": draw(st.sampled_from(["d0", "d1"])),
        "fs": draw(st.integers(1, 50)) * US,
        draw(st.sampled_from(["reads", "writes", "updates"])): draw(some("xy")),
    }
    for key, values in (("reads", some("xy")), ("updates", some("xy", 1)), ("after", some("abc", 1)), ("block", st.just(True))):
        if draw(st.integers(0, 3)) == 3:
            keys[key] = draw(values)
    if draw(st.booleans()):
        keys["queue"] = "other"
    return {"busy": keys}


WAITS = (
    st.just({"wait": "all"})
    | st.sampled_from("abcxyz").map(lambda name: {"wait": name})
    | st.builds(lambda name, back: {"wait": {"name": name, "back": back}}, st.sampled_from("abc"), st.integers(1, 3))
)
SIMPLE = ops() | ops() | ops() | WAITS


def repeats(inside: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[Any]:
    do = st.lists(inside, min_size=2, max_size=5)
    return st.builds(lambda times, do: {"repeat": {"times": times, "do": do}}, st.integers(0, most), do)


LOOP = repeats(SIMPLE | SIMPLE | SIMPLE | repeats(SIMPLE, 3), 9)
BODIES = st.builds(
    lambda *parts: [*parts[0], parts[1], *parts[2]], st.lists(SIMPLE, max_size=2), LOOP, st.lists(SIMPLE | LOOP, max_size=3)
)
RUNTIMES = st.none() | st.fixed_dictionaries(
    {"dispatch": st.integers(0, 30).map(lambda us: us * US), "return": st.integers(0, 20).map(lambda us: us * US)},
    optional={"queue_depth": st.integers(1, 4)},
)


def meaningful(
    body: Statements, known: frozenset[str] = frozenset(), *, outer: frozenset[str] | None = None
) -> list[dict[str, Any]]:
    """Without the names that mean nothing where they stand."""
    found: list[dict[str, Any]] = []
    for statement in body:
        [(kind, keys)] = statement.items()
        visible = known | (outer or frozenset())
        if kind == "repeat":
            inside = frozenset(everything(keys["do"])) if outer is None else outer
            found.append({"repeat": {**keys, "do": meaningful(keys["do"], known, outer=inside)}})
            known |= frozenset(everything(keys["do"]))
        elif kind == "busy":
            found.append(
                {
                    "busy": {
                        **keys,
                        **({"after": [name for name in keys["after"] if f"op {name}" in visible]} if "after" in keys else {}),
                    }
                }
            )
            known |= frozenset(everything([statement]))
        elif kind != "wait" or keys == "all":
            found.append(dict(statement))
        elif isinstance(keys, str):
            if {f"op {keys}", f"value {keys}"} & visible:
                found.append(dict(statement))
        elif outer is not None and f"op {keys['name']}" in outer:
            found.append(dict(statement))
    return found


def everything(body: Statements) -> set[str]:
    found = {f"op {name}" for name in names(body)}
    for statement in body:
        [(kind, keys)] = statement.items()
        if kind == "repeat":
            found |= everything(keys["do"])
        elif kind == "busy":
            found |= {f"value {value}" for value in (*keys.get("writes", []), *keys.get("updates", []))}
    return found


@given(BODIES, RUNTIMES)
def test_any_program_means_the_same_as_read_aloud(body: Statements, runtime: Mapping[str, int] | None) -> None:
    agree({"main": meaningful(body)}, runtime)


@pytest.mark.parametrize("runtime", [None, {"dispatch": 2 * US, "return": 3 * US, "queue_depth": 2}])
def test_a_million_iterations_stay_one_body(runtime: Mapping[str, int] | None) -> None:
    do = [
        {"busy": {"name": "a", "device": "d0", "fs": 5 * US, "updates": ["x"]}},
        {"busy": {"name": "b", "device": "d1", "fs": 7 * US, "reads": ["x"], "writes": ["y"]}},
        {"wait": {"name": "b", "back": 3}},
    ]
    tree = workload_of({"main": [{"repeat": {"times": 10**6, "do": do}}, {"wait": "all"}]}, runtime)
    graph = lowered(tree)
    assert graph.total >= 2 * 10**6
    assert sum(len(block) for block in graph.blocks) < 100
    assert len(graph.costs) <= 2


# ---- several programs

FILLING = st.lists(ops() | st.just({"wait": "all"}), max_size=3)


@st.composite
def meeting_programs(draw: st.DrawFn) -> dict[str, Statements]:
    """Two or three programs that meet equally often, in loops that are not always cut the same way."""
    skeleton = draw(
        st.lists(st.tuples(st.sampled_from(["once", "loop", "local"]), st.sampled_from("mn"), st.integers(1, 7)), max_size=4)
    )
    programs: dict[str, Statements] = {}
    for name in "pqr"[: draw(st.integers(2, 3))]:
        body: list[dict[str, Any]] = []
        for kind, barrier, times in skeleton:
            around = [*draw(FILLING), *([{"barrier": barrier}] if kind != "local" else []), *draw(FILLING)]
            if kind == "once":
                body += around
            else:
                first = draw(st.just(times) | st.integers(0, times))
                body += [{"repeat": {"times": part, "do": around}} for part in (first, times - first) if part]
        programs[name] = meaningful(body)
    return programs


@given(meeting_programs(), RUNTIMES)
def test_programs_meet_at_barriers(programs: dict[str, Statements], runtime: Mapping[str, int] | None) -> None:
    agree(programs, runtime)


def test_programs_that_meet_a_million_times_stay_small() -> None:
    def body(us: int) -> Statements:
        op = {"busy": {"name": "a", "device": "d0", "fs": us * US}}
        return [op, {"repeat": {"times": 10**6, "do": [op, {"barrier": "step"}]}}]

    graph = lowered(workload_of({"p": body(1), "q": body(2)}, None))
    assert sum(len(block) for block in graph.blocks) < 30
    assert PAIRED in graph.ties[:, 4]


def ranked(text: str) -> Tree:
    return read_text(f"hwsim: workload/1\n{text}")


def test_each_runs_one_program_per_device_and_they_meet() -> None:
    text = """
runtime: {dispatch: 1 us, return: 3 us}
program:
  each: d*
  do:
    - repeat:
        times: 4
        do:
          - busy: {name: step, device: $self, time: 10 us * ($rank + 1)}
          - barrier: step
"""
    graph = lowered(ranked(text))
    [block] = graph.blocks
    assert block.times == 4
    assert Counter(graph.labels[label].program for label in block.label.tolist()) == {"d0": 5, "d1": 4, "d2": 4}
    assert simulate(graph).makespan_fs == 4 * (1 + 30 + 3) * US


def test_programs_of_each_share_no_queue_and_no_value() -> None:
    text = """
program:
  each: [d0, d1]
  do:
    - busy: {name: a, device: d2, time: 10 us, updates: x}
    - busy: {name: b, device: $self, time: 1 us, reads: x}
"""
    graph = lowered(ranked(text))
    assert [queue.name for queue in graph.queues] == ["d0:d2.compute", "d1:d2.compute", "d0.compute", "d1.compute"]
    assert simulate(graph).makespan_fs == 11 * US


def test_a_body_too_large_to_write_out_is_refused() -> None:
    op = {"busy": {"name": "a", "device": "d0", "fs": US}}
    body = [{"repeat": {"times": 2, "do": [{"repeat": {"times": 1_000_001, "do": [op]}}]}}]
    with pytest.raises(SpecError, match="contain 1,000,001 ops when unrolled, more than the limit of 1,000,000"):
        lowered(workload_of({"main": body}, None))
    assert lowered(workload_of({"main": [{"repeat": {**body[0]["repeat"], "times": 1}}]}, None)).total == 1_000_001


def test_pieces_are_ops_that_follow_each_other_and_share_the_work() -> None:
    machine = load_machine("""
hwsim: machine/1
class: ideal
parts:
  gpu: {kind: gpu, flop: {fp32: 1 TFLOP/s}, launch: 5 us, memory: {size: 16 GB, bandwidth: 1 TB/s}}
  d: {kind: switch}
""")
    text = """
runtime: {dispatch: 1 us}
program:
  - compute: {name: backward, device: gpu, flop: 800 MFLOP, pieces: 8, writes: g}
  - busy: {name: after, device: d, time: 1 us, reads: g}
"""
    graph = lowered(ranked(text), machine)
    kinds = [graph.labels[label].kind for label in graph.blocks[0].label.tolist()]
    assert kinds == ["dispatch", "insert", "compute"] * 8 + ["dispatch", "insert", "busy"]
    assert simulate(graph).makespan_fs == pytest.approx((1 + 8 * (5 + 100) + 1) * US, abs=100)


def test_a_machine_without_a_cpu_still_has_threads() -> None:
    machine = load_machine("hwsim: machine/1\nclass: ideal\nparts: {d: {kind: switch}}")
    text = "runtime: {dispatch: 2 us, return: 3 us}\nprogram: [{busy: {device: d, time: 4 us}}, {wait: all}]"
    graph = lowered(ranked(text), machine)
    assert [queue.name for queue in graph.queues] == ["host", "d.compute"]
    assert simulate(graph).makespan_fs == 9 * US


def test_what_was_awaited_costs_nothing_to_await_again() -> None:
    text = """
runtime: {dispatch: 2 us, return: 3 us}
program:
  - busy: {name: a, device: d0, time: 4 us}
  - busy: {name: b, device: d0, time: 4 us, writes: y}
  - wait: y
  - wait: [a, b]
  - wait: all
"""
    graph = lowered(ranked(text))
    assert [label.kind for label in graph.labels if label.kind == "return"] == ["return"] * 3
    assert graph.total == 7
    assert simulate(graph).makespan_fs == 13 * US


def test_names_inside_a_node_come_first() -> None:
    machine = load_machine("""
hwsim: machine/1
class: ideal
parts:
  node:
    kind: machine
    count: 2
    parts:
      cpu: {kind: cpu, cores: 4, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 40 GB/s}}
      gpu: {kind: gpu, count: 2, flop: {fp32: 1 TFLOP/s}, memory: {size: 16 GB, bandwidth: 1 TB/s}}
""")
    two = "[{busy: {device: cpu, time: 1 us}}, {busy: {device: %s, time: 1 us}}]"
    text = "runtime: {dispatch: 1 us}\nprogram: {each: %s, do: " + two + "}"
    on_gpus = lowered(ranked(text % ("node*.gpu*", "$self")), machine)
    assert [queue.name for queue in on_gpus.queues if queue.name.endswith("host")] == [
        f"node{n}.gpu{g}:node{n}.cpu.host" for n in range(2) for g in range(2)
    ]
    assert {queue.device for queue in on_gpus.queues if queue.name.startswith("node1.gpu1")} == {"node1.cpu", "node1.gpu1"}
    on_nodes = lowered(ranked(text % ("node*", "gpu1")), machine)
    assert {queue.device for queue in on_nodes.queues} == {f"node{n}.{part}" for n in range(2) for part in ("cpu", "gpu1")}


def test_a_repeat_is_looked_back_on_by_waits_for_an_op_of_its_own_among_others() -> None:
    outer, inner = (Issue((PlacedOp(name=name, label=0, dispatch=0, insert=0, back=0, queue=0),)) for name in "ab")
    for waited, reach in ((("a",), 2), (("b",), 0), (("b", "a"), 2), (("a", "b"), 2), ((), 0)):
        repeat = Repeat(9, (outer, Repeat(2, (inner, WaitStatement(waited, 2, (0,))))))
        assert repeat.reach == reach
