"""What a file says of how unsure a number is reaches the range of the answer, or is refused; and prose decides nothing."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim import api
from hwsim.engine.interval_limits import spreads
from hwsim.families.services.results.uncertainty import work_interval
from hwsim.functions.estimate import estimate
from hwsim.models import load_framework
from hwsim.origins import IDEAL, Origin
from hwsim.results.errors import NORMAL
from hwsim.spec import SpecError
from hwsim.units import Dimension
from hwsim.workload import Runtime
from tests.keys.examples import EXAMPLES
from tests.keys.feeling import Example, put
from tests.keys.schemas import Found

ROOT: Final = Path(__file__).resolve().parent.parent
MANY: Final = 50  # keys of each doubt in the slow test
DOUBTS: Final = ({"spread": "20 %"}, {"source": "guess"})
MOST: Final = 0.01  # a range that is one of many errors' may be so much narrower with one more: the tails of all count less
WORDS: Final = re.compile(r"(source|origin|ref)\.[a-z]|in (source|origin|ref)\b")
Given = tuple[Example, str, Found]


def has_unit(annotation: Any) -> bool:
    marks = (*getattr(annotation, "__metadata__", ()), *get_args(annotation))
    return any(isinstance(mark, Dimension) or has_unit(mark) for mark in marks if mark is not annotation)


def quantities(example: Example, *files: str) -> Iterator[Given]:
    for file, found in example.given():
        if file in files and has_unit(found.field.annotation) and isinstance(found.value, str) and found.value[:1].isdigit():
            yield example, file, found


class Answered(NamedTuple):
    """The makespan, the width of its range (or of the range of the work of its requests), and the errors behind it."""

    makespan: float
    width: float
    errors: frozenset[object]


def answered(machine: Any, workload: Any, requests: Sequence[str] = ()) -> Answered | str:
    """The answer, or the mistake."""
    try:
        run = api.simulate(machine, workload, expect=False, requests=requests)
    except api.ExpectationFailed as failed:
        run = failed.run
    except (SpecError, ValueError) as error:
        return str(error)
    sure = run.interval if run.services is None else work_interval(run)
    width = math.log(sure.high / sure.low) if sure.low > 0 else math.inf
    return Answered(run.makespan_s, width, frozenset(spreads(run.simulated.flat.graph)) | {part.doubt for part in sure.parts})


def lost(given: Given, doubt: dict[str, str]) -> str:
    """What became of a doubt that neither widens the range, nor adds an error to it, nor is refused."""
    example, file, found = given
    documents = {"machine": example.machine, "workload": example.workload}

    def with_value(value: Any) -> Answered | str:
        changed = documents if value is None else {**documents, file: put(documents[file], found.path, value)}
        return answered(**changed, requests=example.requests)

    before, after = with_value(None), with_value({"value": found.value, **doubt})
    if isinstance(before, str) or isinstance(after, str):  # what is right without the doubt is refused for it
        return ""
    number, unit = found.value.partition(" ")[::2]
    moved = with_value(f"{float(number) * 0.8:.12g} {unit}".strip())
    if isinstance(moved, str) or abs(math.log(moved.makespan / before.makespan)) < 0.01:
        return ""
    is_felt = after.width > max(before.width * (1 - MOST), 0.0) or after.errors - before.errors
    return "" if is_felt else f"{found.key}: {before.width} -> {after.width}"


# Closed forms tell how far a line follows a number, also where requests are played one by one.
FORMED: Final = tuple(
    case for case in EXAMPLES if case.framework is None and not case.requests and "requests" not in str(case.machine)
)


@cache
def of(file: str) -> tuple[Given, ...]:
    """The quantities of machines or of workloads."""
    return tuple(quantity for example in FORMED for quantity in quantities(example, file))


@cache
def whole_numbers() -> tuple[tuple[Example, Found], ...]:
    """Those of workloads."""
    return tuple(
        (example, found)
        for example in FORMED
        for file, found in example.given()
        if file == "workload" and type(found.value) is int and int in (found.field.annotation, *get_args(found.field.annotation))
    )


WORKLOADS: Final = st.deferred(lambda: st.sampled_from(of("workload")))  # found where they are drawn, not where tests are listed
MACHINES: Final = st.deferred(lambda: st.sampled_from(of("machine")))
WHOLE: Final = st.deferred(lambda: st.sampled_from(whole_numbers()))


@settings(max_examples=10, deadline=None)
@given(given=WORKLOADS, doubt=st.sampled_from(DOUBTS))
def test_a_doubt_of_a_workload_widens_the_range_or_is_refused(given: Given, doubt: dict[str, str]) -> None:
    assert lost(given, doubt) == ""


@settings(max_examples=20, deadline=None)
@given(given=WHOLE, doubt=st.sampled_from(DOUBTS))
def test_a_whole_number_that_is_unsure_widens_the_range_or_is_refused(
    given: tuple[Example, Found], doubt: dict[str, str]
) -> None:
    example, found = given
    changed = put(example.workload, found.path, {"value": found.value, **doubt})
    before, after = answered(example.machine, example.workload), answered(example.machine, changed)
    if not isinstance(before, str) and not isinstance(after, str):
        assert after.width > before.width * (1 + 1e-9), found.key


@settings(max_examples=10, deadline=None)
@given(given=MACHINES)
def test_a_spread_of_a_machine_widens_the_range_or_is_refused(given: Given) -> None:
    assert lost(given, DOUBTS[0]) == ""


@settings(max_examples=10, deadline=None)
@given(given=MACHINES)
def test_a_guess_of_a_machine_widens_the_range(given: Given) -> None:
    assert lost(given, DOUBTS[1]) == ""


@pytest.mark.slow
def test_doubts_of_many_keys_widen_the_range_or_are_refused() -> None:
    """Others with each change of the change log; HWSIM_LAWS=100000 is all of them."""
    dice, most = random.Random((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), int(os.environ.get("HWSIM_LAWS", MANY))
    cases = [(doubt, of(file)) for file in ("machine", "workload") for doubt in DOUBTS]
    drawn = [(doubt, given) for doubt, pool in cases for given in dice.sample(pool, min(most, len(pool)))]
    assert [found for doubt, given in drawn if (found := lost(given, doubt))] == []


READ: Final = {"read": {"from": "disk", "bytes": "1 GB"}}
SERVED: Final = {"device": "cpu", "arrivals": {"every": "2 s"}, "request": [READ]}
MODEL: Final = {"model": "gpt2", "device": "gpu"}
DOORS: Final[dict[str, dict[str, Any]]] = {
    "program": {"program": [READ, {"wait": "all"}]},
    "jobs": {"jobs": {"a": {"program": [READ, {"wait": "all"}]}}},
    "pipeline": {"pipeline": {"batches": 2, "stages": [{"name": "load", "do": [READ]}]}},
    "services": {"services": {"x": SERVED}, "requests": 5},
    "train": {"train": {**MODEL, "global_batch": 1}},
    "infer": {"infer": {**MODEL, "arrivals": {"every": "100 ms"}, "requests": 3}},
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_number_of_a_part_is_as_unsure_in_a_file_of_its_own(door: str, doubt: dict[str, str], tmp_path: Path) -> None:
    read = {"value": "1 GB/s", **doubt}

    def with_disk(disk: dict[str, Any]) -> Answered | str:
        cpu = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
        links = [{"between": ["cpu", other], "kind": "direct", "bandwidth": "10 GB/s"} for other in ("disk", "gpu")]
        parts = {"cpu": cpu, "disk": disk, "gpu": {"use": "a100-sxm-80gb"}}
        return answered({"hwsim": "machine/1", "parts": parts, "links": links}, {"hwsim": "workload/1", **DOORS[door]})

    (file := tmp_path / "disk.yaml").write_text(json.dumps({"hwsim": "part/1", "kind": "disk", "latency": "80 us", "read": read}))
    stated: dict[str, Any] = {"kind": "disk", "read": "1 GB/s", "latency": "80 us"}
    exact, here, there = (with_disk(spec) for spec in (stated, {**stated, "read": read}, {"use": str(file)}))
    assert isinstance(exact, Answered)
    assert isinstance(here, Answered)
    assert isinstance(there, Answered)
    assert here.width == pytest.approx(there.width)
    assert (here.width > exact.width * (1 + 1e-6)) == (door not in ("train", "infer"))  # which do not read the disk


NUMBERS: Final = {
    "gpu.memory.bandwidth": "2 TB/s", "gpu.flop.bf16": "300 TFLOP/s", "links.bandwidth": "10 GB/s", "disk.read": "1 GB/s",
    "collectives.nccl.start": "20 us",
}  # fmt: skip
ALLREDUCE: Final = {"allreduce": {"among": "gpu*", "bytes": "100 MB"}}
WHOLE_RUNS: Final[dict[str, dict[str, Any]]] = {  # that no op follows, or not all
    "collective": {"program": [ALLREDUCE, READ, {"wait": "all"}]},
    "jobs": {"jobs": {"a": {"program": [ALLREDUCE]}, "b": {"program": [READ]}}},
    "train": {"train": {"model": "gpt2", "global_batch": 2}},
    "infer": {"infer": {"model": "gpt2", "device": "gpu0", "arrivals": {"every": "1 s"}, "requests": 3}},
}


@cache
def of_whole(job: str, number: str = "", value: str = "", *doubt: tuple[str, str]) -> tuple[float, float, float, str]:
    """An answer, how far its ends lie off as logarithms, and the errors that it names; with another number, or a doubt of it."""
    values: dict[str, Any] = {**NUMBERS, number: {"value": value, **dict(doubt)} if doubt else value}
    cpu = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"size": "64 GiB", "bandwidth": "100 GB/s"}}
    gpu = {"use": "a100-sxm-80gb", "count": 2, "flop": {"bf16": values["gpu.flop.bf16"]}}
    parts = {"cpu": cpu, "gpu": {**gpu, "memory": {"bandwidth": values["gpu.memory.bandwidth"]}}}
    parts["disk"] = {"kind": "disk", "read": values["disk.read"]}
    links = [{"between": ["cpu", other], "kind": "direct", "bandwidth": values["links.bandwidth"]} for other in ("gpu0", "gpu1")]
    links.append({"between": ["cpu", "disk"], "kind": "direct", "bandwidth": "10 GB/s"})
    nccl = {"use": "pcie", "start": values["collectives.nccl.start"]}
    machine = {"hwsim": "machine/1", "parts": parts, "links": links, "collectives": {"nccl": nccl}}
    if job in ("step", "batch"):
        found = estimate(machine, "gpt2", **({"global_batch": 2} if job == "step" else {"infer": "prefill", "prompt": 512}))
        said = found.to_json()
        low, high = (said["interval"][f"{end}_s"] / found.seconds for end in ("low", "high"))
        return found.seconds, -math.log(low), math.log(high), str(said)
    run = api.simulated(machine, {"hwsim": "workload/1", **WHOLE_RUNS[job]})
    if job == "infer":
        said = run.to_json()["serving"][0]["interval"]["tpot"]
        assert run.serving[0].each_token is not None
        return run.serving[0].each_token.mean, -math.log(said["low"]), math.log(said["high"]), str(run.to_json()["interval"])
    return run.makespan_s, run.interval.below, run.interval.above, str(run.to_json()["interval"])


@pytest.mark.parametrize("job", [*WHOLE_RUNS, "step", "batch"])
@pytest.mark.parametrize("number", NUMBERS)
def test_what_no_op_follows_the_whole_answer_does(job: str, number: str) -> None:
    """Its ends lie where the answer is with the number at the ends of its own range."""
    value, unit = NUMBERS[number].split()
    exact = of_whole(job)
    ends = [of_whole(job, number, f"{float(value) * math.exp(end * 0.25)!r} {unit}")[0] for end in (-NORMAL[90], NORMAL[90])]
    sides = [math.log(end / exact[0]) for end in ends]
    widths = [math.hypot(exact[1], max(0.0, -min(sides))), math.hypot(exact[2], max(0.0, *sides))]
    for doubt in ({"spread": "25 %"}, {"source": "guess"}):
        found = of_whole(job, number, NUMBERS[number], *doubt.items())
        assert found[0] == exact[0]
        assert sum(found[1:3]) == pytest.approx(sum(widths), rel=0.02)  # alike of a served model
        assert (number in found[3]) == (max(map(abs, sides)) > 1e-6)


def test_a_source_of_a_mapping_is_one_of_each_of_its_numbers() -> None:
    cpu = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"bandwidth": "100 GB/s"}, "class": "ideal"}
    link = {"between": ["cpu0", "cpu1"], "kind": "direct"}
    workload = {"hwsim": "workload/1", "program": [{"allreduce": {"among": "cpu*", "bytes": "1 GB"}}]}
    ways = (
        {"bandwidth": "1 GB/s", "source": "guess"},
        {"bandwidth": {"value": "1 GB/s", "source": "guess"}},
        {"bandwidth": "1 GB/s"},
    )
    machines = [{"hwsim": "machine/1", "parts": {"cpu0": cpu, "cpu1": cpu}, "links": [link | way]} for way in ways]
    outer, inner, exact = (api.simulate(machine, workload).interval.half for machine in machines)
    assert outer == inner > exact


def test_no_more_numbers_are_unsure_than_answers_follow() -> None:
    cpu = {"kind": "cpu", "cores": 4, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"bandwidth": "100 GB/s"}}
    disks = {f"disk-{index}": {"kind": "disk", "read": {"value": "1 GB/s", "source": "guess"}} for index in range(33)}
    links = [{"between": ["cpu", disk], "kind": "direct", "bandwidth": "10 GB/s"} for disk in disks]
    machine = {"hwsim": "machine/1", "parts": {"cpu": cpu, **disks}, "links": links}
    said = answered(machine, {"hwsim": "workload/1", "program": []})
    assert "33 numbers are uncertain: expected at most 32" in str(said)


def test_a_doubt_in_a_file_whose_numbers_no_answer_doubts_is_refused(tmp_path: Path) -> None:
    for doubt in DOUBTS:
        own = {"hwsim": "part/1", "kind": "framework", "use": "vllm", "launch": {"value": "20 us", **doubt}}
        (file := tmp_path / "own.yaml").write_text(json.dumps(own))
        layers = {"use": "gpt2", "layers": {"value": 12, **doubt}}
        for keys in ({"framework": str(file)}, {"model": layers}):
            for door in ("train", "infer"):
                workload = {"hwsim": "workload/1", door: {**DOORS[door][door], "device": "gpu0", **keys}}
                assert "no result includes the uncertainty of this number" in str(answered("dgx-a100", workload))
        with pytest.raises(SpecError, match=re.escape(f"{file}:1:")):
            load_framework(str(file))
        runtime = {"dispatch": "5 us", "queue_depth": {"value": 32, **doubt}}
        assert isinstance(answered("d2l-laptop", {"hwsim": "workload/1", "runtime": runtime, "program": CALLS}), str)
    for key in ("power", "supply", "price"):
        drawn = {
            "kind": "cpu",
            "cores": 4,
            "memory": {"bandwidth": "100 GB/s"},
            key: {"value": "100 USD" if key == "price" else "100 W", "spread": "50 %"},
        }
        assert isinstance(answered({"hwsim": "machine/1", "parts": {"cpu": drawn}}, {"hwsim": "workload/1", "program": []}), str)


CALLS: Final = [{"repeat": {"times": 20, "do": [{"call": {"name": "net", "do": [
    {"busy": {"device": "cpu", "time": "1 ns"}}, {"busy": {"device": "cpu", "time": "1 ns"}}]}}, {"wait": "all"}]}}]  # fmt: skip


@pytest.mark.parametrize("key", ["dispatch", "layer", "return", "call", "issue", "compile", "per_op"])
@pytest.mark.parametrize("doubt", DOUBTS)
def test_times_of_a_runtime_are_as_unsure_as_they_say(key: str, doubt: dict[str, str]) -> None:
    times = {"dispatch": "5 us", "return": "5 us"} | ({"call": "5 us"} if key in ("call", "issue", "compile", "per_op") else {})

    def simulated(**more: Any) -> api.Run:
        return api.simulate("d2l-laptop", {"hwsim": "workload/1", "runtime": times | more, "program": CALLS})

    assert simulated(**{key: "40 us"}).interval.half < 1e-4  # as the file states, and nothing else
    assert simulated(**{key: {"value": "40 us", "source": "guess", "spread": "0 %"}}).interval.half < 1e-4
    if key == "per_op":
        with pytest.raises(SpecError, match="no result includes the uncertainty"):
            simulated(**{key: {"value": "40 us", **doubt}})
    else:
        assert simulated(**{key: {"value": "40 us", **doubt}}).interval.half > 0.02


def test_software_fitted_on_one_computer_is_known_from_elsewhere_on_others() -> None:
    runs = [
        api.simulate(machine, "d2l/hybridize", set={"workload.runtime.use": "mxnet", "n": 20}, expect=False)
        for machine in ("d2l-laptop", "p3.16xlarge")
    ]
    here, there = (run.interval for run in runs)
    assert here.half < 0.15
    assert there.half > 2.0
    assert there.case == "source"
    sure = runs[1].issued_interval
    assert sure is not None
    assert sure.half > 2.0
    assert Runtime().doubts("dispatch", 1e-6, "any cpu") == ()


@pytest.mark.parametrize("words", ["no guess was needed", "default compiler flags", "measured, fitted, spread 90 %"])
def test_words_of_a_reference_decide_nothing(words: str) -> None:
    def half(ref: str) -> float:
        peak = {"value": "100 GFLOP/s", "source": "datasheet", "ref": ref}
        parts = {"cpu": {"kind": "cpu", "cores": 4, "flop": {"fp32": peak}, "memory": {"bandwidth": "40 GB/s"}}}
        product = {"matmul": {"device": "cpu", "m": 2000, "n": 2000, "k": 2000}}
        machine = {"hwsim": "machine/1", "parts": parts}
        return api.simulate(machine, {"hwsim": "workload/1", "program": [product]}).interval.half

    assert half(words) == half("page 3")


def test_a_source_is_never_searched_for_words() -> None:
    """No code asks whether a word stands in a source; f-strings would lose it, and raise."""
    asked = ("startswith", "endswith", "find", "search", "fullmatch", "match", "partition", "rpartition", "split")
    found = []
    for file in sorted((ROOT / "hwsim").rglob("*.py")):
        text = file.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if WORDS.search(text) else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="source" | "origin" | "ref"), attr=attr)) if attr in asked:
                    found.append((file.name, node.lineno))
                case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=name)]):
                    found += [(file.name, node.lineno)] if name in ("source", "origin", "ref") else []
    files = {"files.py", "question.py", "estimate.py", "nodes.py", "compare.py", "opened.py"}  # a source of text: a path, or YAML
    assert [place for place in found if place[0] not in files] == []
    with pytest.raises(TypeError):
        f"{IDEAL}"
    assert str("rate: " + replace(IDEAL, kind="guess")) == "rate: guess"
    assert Origin("guess", spread=0.0).doubts is False
