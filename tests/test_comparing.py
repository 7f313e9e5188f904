"""Comparisons: laws of shares, of waterfalls on real files, and of the rows by cause and by op."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.comparing import Comparison, compare, of_document, of_sides, shares
from hwsim.comparing.class_defaults import as_its_class
from hwsim.comparing.parameters import Files, mixed, parameters
from hwsim.comparing.shapley import Chosen, rounded
from hwsim.comparing.waterfall import CannotMix, waterfall
from hwsim.planning.question import read_question
from hwsim.spec import SpecError, read_text, tree_of
from hwsim.studies.measures import StudyMeasure
from hwsim.workload import sources
from tests.command import hwsim
from tests.present import present
from tests.service_cases import MACHINE as IDEAL
from tests.service_cases import busy, workload

# ---- shares ----

NAMES = ("a", "b", "c", "d", "e")


def game(seed: int, names: tuple[str, ...]) -> dict[Chosen, int]:
    """Any answer for each set of changes."""
    draw = random.Random(seed)
    sets: list[Chosen] = [frozenset()]
    for name in names:
        sets += [chosen | {name} for chosen in sets]
    return {chosen: draw.randrange(-(10**9), 10**9) for chosen in sets}


@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([8, 0]))
def test_shares_add_up_exactly(seed: int, many: int, exact: int) -> None:
    values = game(seed, NAMES[:many])
    found = shares(NAMES[:many], values.__getitem__, exact=exact, orders=6)
    total = values[frozenset(NAMES[:many])] - values[frozenset()]
    assert sum(found.exact.values()) == total
    assert sum(found.whole.values()) == total
    assert all(abs(found.exact[name] - found.whole[name]) < 1 for name in NAMES[:many])


@given(st.integers(0, 10**6), st.sampled_from([8, 0]))
def test_swapping_both_ends_negates_every_share(seed: int, exact: int) -> None:
    values, everything = game(seed, NAMES), frozenset(NAMES)
    there = shares(NAMES, values.__getitem__, exact=exact, orders=6)
    back = shares(NAMES, lambda chosen: values[everything - chosen], exact=exact, orders=6)
    assert back.exact == {name: -share for name, share in there.exact.items()}
    assert back.whole == {name: -share for name, share in there.whole.items()}


@given(st.integers(0, 10**6))
def test_a_change_without_effect_has_no_share_and_symmetric_changes_have_the_same(seed: int) -> None:
    values = game(seed, ("a", "both"))

    def value(chosen: Chosen) -> int:  # "x" and "y" do the same, "idle" nothing
        return values[(chosen & {"a"}) | ({"both"} if {"x", "y"} & chosen else frozenset())]

    for exact in (8, 0):
        found = shares(["a", "x", "y", "idle"], value, exact=exact, orders=8)
        assert found.exact["idle"] == found.whole["idle"] == 0
    exactly = shares(["a", "x", "y", "idle"], value)
    assert exactly.exact["x"] == exactly.exact["y"]
    assert abs(exactly.whole["x"] - exactly.whole["y"]) <= 1


def test_drawn_orders_come_near_the_mean_over_all_and_say_how_near() -> None:
    values = game(3, NAMES)
    exactly, drawn = (shares(NAMES, values.__getitem__, exact=exact, orders=400) for exact in (8, 0))
    assert drawn.orders == 400
    assert all(abs(drawn.exact[name] - exactly.exact[name]) < 4 * drawn.unsure[name] + 1 for name in NAMES)


def test_whole_numbers_take_the_largest_remainders() -> None:
    assert rounded({"a": Fraction(7, 3), "b": Fraction(5, 3), "c": Fraction(0)}, 4) == {"a": 2, "b": 2, "c": 0}
    assert rounded({"a": Fraction(-7, 3), "b": Fraction(-5, 3), "c": Fraction(0)}, -4) == {"a": -2, "b": -2, "c": 0}


# ---- changes of files ----

MACHINE = """
hwsim: machine/1
class: ideal
parts:
  cpu: {kind: cpu, use: d2l-server-cpu}
  gpu: {kind: gpu, use: d2l-gpu, count: 2}
links:
  - {name: slots, between: [cpu, gpu*], kind: pcie, bandwidth: 16 GB/s}
"""
DISK = "  disk: {kind: disk, use: d2l-ssd}"
WORKLOAD: dict[str, Any] = {"hwsim": "workload/1", "program": [{"copy": {"from": "cpu", "to": "gpu0", "bytes": "160 MB"}}]}


def files(text: str, workload: dict[str, Any] | None = None) -> Files:
    return Files(read_text(text), tree_of(workload or WORKLOAD))


def names_of(first: Files, second: Files) -> list[str]:
    return [change.name for change in parameters(first, second)]


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("use: d2l-gpu,", "use: t4,", ["gpu"]),
        ("use: d2l-gpu, count: 2", "use: t4, count: 4", ["gpu", "gpu.count"]),
        ("16 GB/s", "32 GB/s", ["link slots.bandwidth"]),
        ("16 GB/s", "{value: 16 GB/s, source: guess}", []),
        ("class: ideal", "name: another\nclass: ideal", []),
        ("kind: pcie, bandwidth: 16 GB/s", "kind: pcie, use: pcie4-x16", ["link slots"]),
        ("class: ideal", "class: ideal\nlet: {n: 1}", ["let.n"]),
        ("links:", f"{DISK}\nlinks:\n  - {{between: [cpu, disk], kind: pcie, gen: 4, lanes: 4}}", ["disk + links"]),
    ],
)
def test_a_change_of_a_file_is_a_change_by_its_name(before: str, after: str, names: list[str]) -> None:
    assert before in MACHINE
    first, second = files(MACHINE), files(MACHINE.replace(before, after))
    assert names_of(first, second) == names
    assert names_of(second, first) == names
    there = mixed(first, second, parameters(first, second))
    assert names_of(there, second) == []


def test_a_parameter_of_the_workload_goes_by_its_name() -> None:
    first, second = (
        {"hwsim": "workload/1", "let": {"n": n}, "program": [{"busy": {"device": "cpu", "time": "$n"}}]} for n in (1, 2)
    )
    assert names_of(files(MACHINE, first), files(MACHINE, second)) == ["n"]


def test_changes_that_cannot_be_made_alone_are_one() -> None:
    before, after = (files(MACHINE, {**WORKLOAD, "let": dict.fromkeys("abc", n)}) for n in (1, 2))

    def value(mixture: Files) -> int:
        let = {name: tree.value for name, tree in (mixture.workload.get("let") or tree_of({})).items()}
        if let["a"] != let["b"]:
            raise CannotMix
        return 10 * int(str(let["a"])) + int(str(let["c"]))

    found = waterfall(before, after, value, 1.0)
    assert [(step.change.name, step.share) for step in found.steps] == [("a + b", 10), ("c", 1)]
    assert found.first + sum(step.share for step in found.steps) == found.last


def test_workloads_without_a_common_name_are_not_mixed() -> None:
    services = ({"log": {"device": "cpu"}}, {"front": {"device": "cpu"}, "store": {"device": "cpu"}})
    before, after = (files(MACHINE, {"hwsim": "workload/1", "name": f"{len(few)}", "services": few}) for few in services)
    [change] = parameters(before, after)
    assert (change.name, change.before, change.after) == ("workload", "1", "2")
    assert mixed(before, after, [change]).workload.plain() == {**after.workload.plain(), "name": "1"}


def test_changes_that_disagree_only_in_the_middle_are_all_one() -> None:
    before, after = (files(MACHINE, {**WORKLOAD, "let": dict.fromkeys("abcd", n)}) for n in (1, 2))

    def value(mixture: Files) -> int:
        changed = sum(tree.value == 2 for _, tree in (mixture.workload.get("let") or tree_of({})).items())
        if changed == 2:
            raise CannotMix
        return changed

    found = waterfall(before, after, value, 1.0)
    assert [(step.change.name, step.share) for step in found.steps] == [("a + b + c + d", 4)]


def test_beyond_eight_changes_those_without_effect_are_left_out_first() -> None:
    letters = "abcdefghijkl"
    before, after = (files(MACHINE, {**WORKLOAD, "let": dict.fromkeys(letters, n)}) for n in (1, 2))

    def value(mixture: Files) -> int:
        let = {name: int(str(tree.value)) for name, tree in (mixture.workload.get("let") or tree_of({})).items()}
        return let["a"] * let["b"] + let["c"]

    found = waterfall(before, after, value, 1.0)
    shared = {step.change.name: step.share for step in found.steps}
    assert sorted(shared.values()) == [1, 1, 2]  # a and b share 3
    assert shared["c"] == 1
    assert [change.name for change in found.without] == list(letters[3:])
    assert found.orders == 0
    assert found.evaluations < 60


# ---- runs ----


@pytest.fixture(scope="module")
def machines() -> Comparison:
    return compare(("dgx-a100", "dgx-h100"), ("bert-large", "bert-large"))


def test_a_waterfall_leads_from_one_run_to_the_other(machines: Comparison) -> None:
    steps = present(machines.steps)
    assert steps.first == machines.first.makespan_fs
    assert steps.last == machines.second.makespan_fs
    assert steps.first + sum(step.share for step in steps.steps) == steps.last
    assert "gpu + link gpu*-nvs" in {step.change.name for step in steps.steps}  # NVLinks are as many as the GPU has
    assert {"nic", "link nics"} <= {change.name for change in steps.without}


def test_swapped_machines_have_opposite_shares() -> None:
    there, back = (compare(pair, ("d2l/async-matmul",) * 2) for pair in (("d2l-laptop", "laptop"), ("laptop", "d2l-laptop")))
    shares = [{step.change.name: step.share for step in present(both.steps).steps} for both in (there, back)]
    assert shares[0] == {name: -share for name, share in shares[1].items()}
    assert len(shares[0]) == 2
    over = present(there.over)
    assert present(back.over).value == pytest.approx(1 / over.value)
    assert present(back.over).half == pytest.approx(over.half)


def test_causes_and_ops_add_up_to_the_difference(machines: Comparison) -> None:
    apart = machines.second.makespan_fs - machines.first.makespan_fs
    assert sum(row.difference_fs for row in machines.causes) == apart
    waited = [sum(op.critical_path_fs or 0 for op in side.ops) for side in (machines.first, machines.second)]
    assert waited == [machines.first.makespan_fs, machines.second.makespan_fs]


def test_the_sentence_says_how_sure_it_is(machines: Comparison) -> None:
    assert re.search(r"B is 2\.\d+x faster than A \(90 % interval 1\.\d+–2\.\d+x\)", str(machines))


def as_it_is(_: StudyMeasure, values: tuple[float, float]) -> float:
    return values[0] / values[1]


def test_runs_that_were_written_compare_as_the_runs_themselves(machines: Comparison, tmp_path: Path) -> None:
    for name, machine in (("a", "dgx-a100"), ("b", "dgx-h100")):
        (tmp_path / f"{name}.json").write_text(
            hwsim("simulate", machine, "bert-large", "--json", "--ops").stdout, encoding="utf-8"
        )
    sides = [of_document(json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")), name) for name in "ab"]
    both = of_sides(sides[0], sides[1])
    plain = of_sides(machines.first, machines.second, alike=as_it_is)
    again = of_sides(sides[0], sides[1], alike=as_it_is)
    assert plain.over is not None
    assert again.over is not None
    assert (again.over.value, again.over.half) == pytest.approx((plain.over.value, plain.over.half))
    assert machines.is_unlike
    assert both.is_unlike
    assert both.over is None  # what provenance makes, only runs of the files tell
    assert [row.name for row in both.causes] == [row.name for row in machines.causes]
    assert [row.first_fs for row in both.causes] == pytest.approx([row.first_fs for row in machines.causes], abs=9)
    assert sum(row.difference_fs for row in both.causes) == machines.second.makespan_fs - machines.first.makespan_fs
    assert both.second.work == machines.second.work


def test_runs_of_machines_that_are_known_alike_have_the_same_range_from_files(tmp_path: Path) -> None:
    slower, faster = ({"machine.gpu.memory.bandwidth": rate} for rate in ("4 TB/s", "4.8 TB/s"))  # nobody measured either
    machines = compare(("dgx-h100",) * 2, ("bert-large",) * 2, set_a=slower, set_b=faster, attribute=False)
    sides = [
        of_document(json.loads(hwsim("simulate", "dgx-h100", "bert-large", "--json", "--set", change).stdout), "a file")
        for change in ("machine.gpu.memory.bandwidth=4 TB/s", "machine.gpu.memory.bandwidth=4.8 TB/s")
    ]
    both = of_sides(sides[0], sides[1])
    assert both.over is not None
    assert machines.over is not None
    assert (both.over.value, both.over.half) == pytest.approx((machines.over.value, machines.over.half))


def test_what_is_known_less_well_is_said() -> None:
    same = compare(("dgx-a100", "dgx-a100"), ("bert-large", "bert-large"), attribute=False)
    assert [warning.code for warning in same.warnings] == []
    assert "both have the same time" in str(same)
    sure = present(same.second.interval)
    unknown = replace(same.second, machine="another", interval=replace(sure, case="outside"))
    [warning] = of_sides(same.first, unknown).warnings
    assert warning.code == "mixed-provenance"
    assert "B rests on extrapolation" in warning.message
    assert "A rests on class defaults" in warning.message


def test_a_difference_that_provenance_alone_makes_is_no_evidence() -> None:
    measured = sources.with_settings("dgx-h200", "bert-large", {})[0]
    twin = as_its_class(measured).put("name", tree_of("its twin, of which nothing was measured"))
    both = compare((twin, measured), ("bert-large", "bert-large"), attribute=False)
    assert both.values is not None
    assert both.values[0] != both.values[1]
    assert both.alike == pytest.approx(1.0)
    assert both.over is not None
    assert both.over.low < 1.0 < both.over.high
    assert not both.over.is_conclusive
    assert as_its_class(twin) == twin


def test_the_range_holds_what_is_said_if_both_are_known_alike() -> None:
    both = compare(("dgx-h100", "dgx-h200"), ("bert-large", "bert-large"), attribute=False)
    plain = of_sides(both.first, both.second, alike=as_it_is)
    assert both.over is not None
    assert both.alike is not None
    assert both.over.half == pytest.approx(present(plain.over).half + abs(math.log(both.over.value / both.alike)))
    bandwidth = compare(
        ("dgx-h100",) * 2, ("bert-large",) * 2, set_b={"machine.gpu.memory.bandwidth": "4.8 TB/s"}, attribute=False
    )
    assert bandwidth.is_unlike  # nobody measured a chip with such a memory, by what is said
    assert both.alike == pytest.approx(present(bandwidth.over).value, rel=0.02)  # the same chip with other memory


def test_runs_of_different_work_are_compared_per_unit_of_it() -> None:
    both = compare(("p3dn.24xlarge",) * 2, ("d2l/multi-gpu-resnet18",) * 2, set_a={"gpus": 2}, set_b={"gpus": 4})
    assert present(both.measure).column == "samples_per_s"
    assert both.unit == "samples"
    assert both.amounts[1] == 2 * both.amounts[0]
    assert [step.change.name for step in present(both.steps).steps] == ["gpus"]
    assert {pair.name for pair in both.ops if pair.first and pair.second} >= {"forward", "backward"} or both.ops


@pytest.mark.parametrize("by", ["step", "tokens/s", "MFU", "peak_memory", "busy:gpu0.compute", "trainings.0.bubble"])
def test_any_measure_of_a_sweep_is_attributed_exactly(by: str) -> None:
    both = compare(("dgx-a100", "dgx-a100"), ("bert-large", "bert-large"), by=by, set_b={"machine.gpu.use": "h100-sxm"})
    assert both.steps is not None
    assert both.steps.first + sum(step.share for step in both.steps.steps) == both.steps.last
    assert both.steps.last * both.steps.unit == pytest.approx(present(both.values)[1], rel=1e-10)


def test_the_price_of_a_machine_is_a_change_of_its_own() -> None:
    from hwsim.costs.bill import Paying
    from hwsim.costs.prices import load_prices

    paying = Paying(load_prices(), "on_demand")
    case = ("dgx-h200", "dgx-h100"), ("bert-large", "bert-large")  # the second is slower, and its rent is lower
    both = compare(*case, by="cost", paying=paying)
    assert both.steps is not None
    shares = {step.change.name: step.share for step in both.steps.steps}
    assert shares.keys() == {"gpu", "price of the machine"}
    assert shares["gpu"] > 0 > shares["price of the machine"]
    assert both.steps.first + sum(shares.values()) == both.steps.last
    time = present(compare(*case, attribute=False).over)
    assert present(both.over).half > time.half  # prices are unsure, too


def test_a_service_is_compared_by_what_is_asked_for() -> None:
    case = ("dgx-h100", "dgx-h100"), ("llama3-8b-serving", "llama3-8b-serving")
    few = {"workload.infer.requests": 40}
    plain = compare(*case, set=few, set_b={"machine.gpu.use": "h200-sxm"}, attribute=False)
    assert plain.values is None
    assert "--by ttft_p95" in plain.why
    by = compare(*case, set=few, set_b={"machine.gpu.use": "h200-sxm"}, by="ttft_p95", attribute=False, interval="runs")
    assert by.over is not None
    assert by.over.value > 1
    assert by.over.half > 0


def test_a_program_that_is_a_service_is_not_compared_by_how_long_its_requests_come() -> None:
    services = {"web": {"device": "cpu", "arrivals": {"every": "2 ms"}, "request": [busy("1 ms")]}}
    files = workload(services, requests=300), workload(services, requests=150)
    plain = compare((IDEAL, IDEAL), files, attribute=False)
    assert plain.measure is None
    assert plain.over is None
    assert "--by latency_p50, latency_p99, requests/s" in plain.why
    assert re.search(r"run +time +p50 +p99 +requests/s", str(plain)), "all measures of both, without a choice"
    by = compare((IDEAL, IDEAL), files, by="latency_p99", attribute=False)
    assert by.values == pytest.approx((1e-3, 1e-3))
    with pytest.raises(SpecError, match="`time` cannot rank services"):
        read_question({"machine": "laptop", "workload": files[0], "minimise": "time"})


# ---- the command ----


def test_a_run_and_measurements(tmp_path: Path) -> None:
    table = tmp_path / "m.csv"
    table.write_text("op,time,times\nadd,29 us,\nmakespan,0.0302,\n", encoding="utf-8")
    found = json.loads(hwsim("compare", "d2l-laptop", "d2l/async-loop", table, "--json").stdout)
    assert found["hwsim"] == "comparison/2"
    [row] = found["ops"]
    assert row["error"] == pytest.approx(30 / 29 - 1)
    assert row["known_by"] == "stated"
    assert found["measured_makespan_s"] == 0.0302
    (tmp_path / "m.json").write_text(json.dumps({"add": "29 us"}), encoding="utf-8")
    assert (
        json.loads(hwsim("compare", "d2l-laptop", "d2l/async-loop", tmp_path / "m.json", "--json").stdout)["ops"] == found["ops"]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("op,time\nad,29 us\n", "the run has no op 'ad'"),
        ("op,time\nadd,29 uz\n", "m.csv:2:1: 'add': '29 uz' is not a time"),
        ("op,time\nadd,-1\n", "expected a time above 0, got -1"),
        ("op,time\nadd,1\nadd,2\n", "m.csv:3:1: op 'add' has two rows"),
        ("op,time\nadd\n", "expected 2 columns, got 1"),
        ("a,b\n1,2\n", "m.csv:1:1: no column `op`"),
        ("", "m.csv:1:1: no column `op`"),
        ("op,total,times\nadd,1,7\n", "7 executions measured, 1,000 simulated"),
        ("op,time,times\nadd,1,x\n", "expected a whole number above 0"),
        ("op,time\n,1\n", "m.csv:2:1: the row has no op name"),
    ],
)
def test_mistakes_of_a_table_have_their_place(tmp_path: Path, content: str, message: str) -> None:
    table = tmp_path / "m.csv"
    table.write_text(content, encoding="utf-8")
    done = hwsim("compare", "d2l-laptop", "d2l/async-loop", table, code=2)
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dgx-a100"], "nothing to compare: 'dgx-a100' is a machine"),
        (["dgx-a100", "dgx-h100"], "MACHINE MACHINE WORKLOAD"),
        (["dgx-a100", "bert-large"], "has no recorded times"),
        (["dgx-a100", "dgx-h1000", "bert-large"], "did you mean 'dgx-h100'?"),
        (["dgx-a100", "dgx-h100", "bert-large", "--by", "speed"], "no measure 'speed'"),
        (["dgx-a100", "dgx-h100", "bert-large", "--set-a", "nothing"], "is not of the form PATH=VALUE"),
        (["none.json", "none.json"], "there is no file 'none.json'"),
        (["dgx-a100", "dgx-h100", "bert-large", "--plot", "x.txt"], "a figure must end in"),
    ],
)
def test_mistakes_of_the_command_say_what_is_accepted(arguments: list[str], message: str) -> None:
    done = hwsim("compare", *arguments, code=2)
    assert message in done.stderr


def test_a_document_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected a run"):
        of_document({"hwsim": "sweep/2"}, "a.json")
    with pytest.raises(SpecError, match="missing key 'work'"):
        of_document({"hwsim": "result/2", "makespan_fs": 1, "limited_by": [], "makespan_s": 1e-15}, "a.json")
    (tmp_path / "a.json").write_text('{"hwsim": "sweep/2"}', encoding="utf-8")
    hwsim("compare", tmp_path / "a.json", tmp_path / "a.json", code=2)


def test_a_figure_of_the_waterfall(tmp_path: Path) -> None:
    path = tmp_path / "w.svg"
    done = hwsim("compare", "d2l-laptop", "d2l/async-loop", "--set-b", "blocking=true", "--plot", path, "--json")
    assert json.loads(done.stdout)["waterfall"]["steps"][0]["name"] == "blocking"
    assert path.read_text(encoding="utf-8").startswith("<?xml")


def test_a_folded_run_compares_with_one_of_other_ranks() -> None:
    both = compare(("scale/rail-fat-tree",) * 2, ("scale/allreduce",) * 2, set_b={"bytes": "2 MB"}, attribute=False)
    assert {pair.name for pair in both.ops if pair.first and pair.second}


def test_prices_give_energy_and_cost_of_both_runs_as_simulate_says_them(tmp_path: Path) -> None:
    """The option is heeded whatever the runs are compared by."""
    asked = {"train": {"model": "gpt2", "device": "gpu0", "global_batch": 16, "microbatch": 16, "sequence": 1024}}
    (tmp_path / "w.yaml").write_text(json.dumps({"hwsim": "workload/1", **asked}), encoding="utf-8")
    prices = ["--prices", "library", "--rent", "on-demand"]
    words = ["compare", "dgx-h100", "dgx-a100", str(tmp_path / "w.yaml"), "--no-waterfall", *prices]
    found = json.loads(hwsim(*words, "--json").output)
    for side, machine in (("a", "dgx-h100"), ("b", "dgx-a100")):
        ran = json.loads(hwsim("simulate", machine, str(tmp_path / "w.yaml"), "--json", *prices).output)
        assert found[side]["cost_usd"] == ran["cost"]["total_usd"]["value"]
        assert found[side]["energy_joules"] == ran["energy"]["joules"]["value"]
    text = hwsim(*words).output
    assert re.search(r"^  run .+ energy +cost$", text, re.MULTILINE)
    assert " cost" not in hwsim(*words[:-4]).output


def test_a_written_run_with_warnings_is_compared_with_them() -> None:
    """It was refused for a key that no file has."""
    document = json.loads(hwsim("simulate", "c5.18xlarge", "d2l/cloud-iops", "--json").stdout)
    warned = [notice["text"] for notice in document["warnings"]]
    assert warned
    assert [warning.text for warning in of_document(document, "run.json").warnings] == warned


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0])
def test_a_written_run_whose_parts_do_not_add_up_is_refused(factor: float) -> None:
    """The rest went to the longest part, whatever it was: an edited file had other shares, or one below 0."""
    document = json.loads(hwsim("simulate", "d2l-laptop", "d2l/async-loop", "--json").stdout)
    changed = {**document, "makespan_fs": int(document["makespan_fs"] * factor)}
    with pytest.raises(SpecError, match="do not add up"):
        of_document(changed, "run.json")
