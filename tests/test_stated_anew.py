"""A number of a part stated anew: what was fitted goes with it, and the part is then one that nobody measured.

HWSIM_LAWS is how many ops with a better number the slow test tries of each part; all of them take half an hour.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hwsim
from hwsim.costs.energy import Energy, energy_of
from hwsim.spec import names, tree_of
from hwsim.views.explain.numbers import FileNumber, FileNumbers

Op = dict[str, dict[str, Any]]
OPS: dict[str, dict[str, Op]] = {
    "gpu": {
        "product": {"matmul": {"device": "it", "m": 4096, "n": 4096, "k": 4096, "dtype": "fp16"}},
        "thin product": {"matmul": {"device": "it", "m": 8, "n": 4096, "k": 4096, "dtype": "fp16"}},
        "elements": {"elementwise": {"device": "it", "shape": [30_000_000], "dtype": "fp32"}},
        "prefill": {"attention": {"device": "it", "batch": 4, "heads": 32, "head": 128, "tokens": 2048}},
        "decode": {"attention": {"device": "it", "batch": 64, "heads": 32, "kv_heads": 8, "head": 128, "cached": 4096}},
        "reads": {"access": {"device": "it", "count": 1_000_000}},
    },
    "cpu": {
        "product": {"matmul": {"device": "it", "m": 1024, "n": 1024, "k": 1024, "dtype": "fp32"}},
        "elements": {"elementwise": {"device": "it", "shape": [30_000_000], "dtype": "fp32"}},
        "reads": {"access": {"device": "it", "count": 1_000_000, "working_set": "1 GB"}},
    },
    "disk": {
        "stream": {"read": {"from": "it", "bytes": "10 GB"}},
        "small reads": {"read": {"from": "it", "bytes": "4 kB", "times": 10_000, "access": "random", "depth": 16}},
        "writes": {"write": {"to": "it", "bytes": "1 GB"}},
    },
}
COUNT: Final = int(os.environ.get("HWSIM_LAWS", "2"))
LINKS: Final = ("pcie", "nvlink", "ethernet", "infiniband", "upi", "xgmi", "wifi", "slingshot", "omnipath")
OPS |= {kind: {"copy": {"copy": {"from": "a", "to": "b", "bytes": "100 MB"}}} for kind in LINKS}
PARTS: Final = sorted((kind, name) for kind in OPS for name in names(kind))
LARGE: Final[Op] = {"matmul": {"device": "gpu0", "m": 8192, "n": 8192, "k": 8192, "dtype": "bf16"}}


def run(machine: Any, op: Op, **set: object) -> hwsim.Run:  # noqa: A002 (the word of hwsim)
    return hwsim.simulate(machine, {"hwsim": "workload/1", "program": [op]}, set=set, expect=False)


def alone(kind: str, name: str) -> dict[str, Any]:
    if kind not in LINKS:
        return {"hwsim": "machine/1", "parts": {"it": {"kind": kind, "use": name}}}
    end = {"kind": "cpu", "cores": 1, "flop": {"fp32": "1 TFLOP/s"}, "memory": {"bandwidth": "100 TB/s"}}
    link = {"name": "it", "between": ["a", "b"], "kind": kind, "use": name}
    return {"hwsim": "machine/1", "parts": {"a": end, "b": end}, "links": [link]}


def numbers_of(kind: str, name: str) -> list[FileNumber]:
    """Those that are better when larger, or smaller, whatever else there is: the sides of a platter are not."""
    numbers = FileNumbers(tree_of(alone(kind, name))).everything()
    mine = [number for number in numbers if number.path.startswith(("machine.it.", "machine.links.it."))]
    return [number for number in mine if number.better and not number.key.startswith("platter")]


def case(run: hwsim.Run) -> str:
    return run.interval.case


def energy(machine: str, **set: object) -> Energy:  # noqa: A002
    drawn = energy_of(run(machine, LARGE, **set))
    assert drawn is not None
    return drawn


def better(number: FileNumber, factor: float) -> str:
    return number.times(1 / factor if number.better == "halved" else factor)


def seconds(kind: str, name: str, op: Op, number: FileNumber, factor: float) -> float | None:
    """Seconds of an op with one number better; None where the part refuses it."""
    try:
        return run(alone(kind, name), op, **{number.path: better(number, factor)}).makespan_s
    except hwsim.SpecError:
        return None


@pytest.mark.parametrize(
    ("machine", "change", "low", "high"),
    [  # microseconds: peaks scale nearly all of it, watts to the power of 0.6
        ("mi300x-8", {"machine.gpu.flop.bf16": "2614.8 TFLOP/s"}, 860, 868),
        ("mi300x-8", {"machine.gpu.flop.bf16": "13074 TFLOP/s"}, 175, 185),
        ("dgx-a100", {"machine.gpu.flop.bf16": "624 TFLOP/s"}, 1940, 1955),
        ("dgx-a100", {"machine.gpu.flop.bf16": "3120 TFLOP/s"}, 400, 450),
        ("dgx-h100", {"machine.gpu.power": "500 W"}, 1630, 1650),
        ("dgx-h100", {"machine.gpu.clock": "0.99 GHz"}, 2670, 2695),
        ("dgx-h100", {"machine.gpu.sms": 264}, 660, 680),
    ],
)
def test_a_product_goes_with_the_numbers_of_its_gpu(machine: str, change: dict[str, object], low: float, high: float) -> None:
    told = run(machine, LARGE, **change)
    assert low < told.makespan_s * 1e6 < high
    assert case(told) == "generation"


def test_peaks_of_other_number_formats_stay() -> None:
    op: Op = {"matmul": {**LARGE["matmul"], "dtype": "fp16"}}
    for machine in ("mi300x-8", "dgx-a100"):
        assert run(machine, op, **{"machine.gpu.flop.bf16": "9 PFLOP/s"}).makespan_s == run(machine, op).makespan_s


def test_less_power_takes_longer_and_draws_less() -> None:
    low, middle, usual = (energy("dgx-h100", **{"machine.gpu.power": f"{watts} W"}) for watts in (350, 500, 700))
    assert low.seconds > middle.seconds > usual.seconds
    assert low.watts < middle.watts < usual.watts
    assert (low.measured, usual.measured) == (False, True)  # the node's curve was measured with cards of 700 W


def test_a_lower_clock_draws_less() -> None:
    assert energy("dgx-h100", **{"machine.gpu.clock": "1 GHz"}).watts < energy("dgx-h100").watts


def test_a_file_of_the_user_is_a_what_if_as_well_and_one_on_top_of_it_too() -> None:
    machine = {"hwsim": "machine/1", "parts": {"gpu0": {"kind": "gpu", "use": "h100-sxm", "power": "350 W"}}}
    told = run(machine, LARGE)
    assert case(told) == "generation"
    again = run(machine, LARGE, **{"machine.gpu0.power": "700 W"})
    assert again.makespan_s == run("dgx-h100", LARGE).makespan_s
    assert case(again) == "known"


def test_what_a_user_measured_beside_other_numbers_holds_for_these(tmp_path: Path) -> None:
    tiles = {"efficiency": "80 %", "loads": "100 GB/s", "source": "fitted"}
    own = {"hwsim": "part/1", "kind": "gpu", "use": "h100-sxm", "flop": {"bf16": "800 TFLOP/s"}, "matmul": {"bf16": tiles}}
    (tmp_path / "own.yaml").write_text(json.dumps(own))
    machine = {"hwsim": "machine/1", "parts": {"gpu0": {"kind": "gpu", "use": str(tmp_path / "own.yaml")}}}
    usual = run(machine, LARGE)
    assert case(usual) == "known"
    assert 0.8 * 800e12 > 2 * 8192**3 / usual.makespan_s > 0.7 * 800e12
    assert run(machine, LARGE, **{"machine.gpu0.flop.bf16": "1600 TFLOP/s"}).makespan_s < 0.57 * usual.makespan_s


@pytest.mark.parametrize("power", ["350 W", {"idle": "60 W", "loaded": "350 W"}])
def test_watts_are_felt_in_either_form(power: object) -> None:
    machine = {"hwsim": "machine/1", "parts": {"gpu0": {"kind": "gpu", "use": "h100-sxm", "power": power}}}
    assert run(machine, LARGE).makespan_s == pytest.approx(run("dgx-h100", LARGE).makespan_s * 2**0.6, rel=0.01)


def test_measured_functions_go_with_the_clock_and_the_memory() -> None:
    kernels = {
        "source": "fitted",
        "levels": {"memory": {"beyond": "1 MB", "read": "10 GB/s"}},
        "functions": {"add": {"call": "1 us", "each": {"fp64": "0.5 ns"}, "counts": [1, 1e9]}},
    }
    cpu = {"kind": "cpu", "cores": 4, "clock": "2 GHz", "per_cycle": {"fp64": 16}, "memory": {"bandwidth": "20 GB/s"}}
    machine = {"hwsim": "machine/1", "parts": {"cpu": {**cpu, "kernels": kernels}}}
    op: Op = {"elementwise": {"device": "cpu", "shape": [1_000_000], "dtype": "fp64", "function": "add"}}
    usual, both = run(machine, op), {"machine.cpu.clock": "4 GHz", "machine.cpu.memory.bandwidth": "40 GB/s"}
    for path, value in both.items():
        told = run(machine, op, **{path: value})
        assert usual.makespan_s / 2 < told.makespan_s < usual.makespan_s
        assert (case(usual), case(told)) == ("known", "generation")
    assert run(machine, op, **both).makespan_s == pytest.approx(usual.makespan_s / 2, rel=1e-9)


def test_a_clock_beside_a_part_without_one_is_refused() -> None:
    with pytest.raises(hwsim.SpecError, match="`clock` has no effect"):
        run(alone("gpu", "d2l-gpu"), OPS["gpu"]["elements"], **{"machine.it.clock": "2 GHz"})


def test_exchanges_over_other_cards_are_no_longer_fitted() -> None:
    op: Op = {"allreduce": {"among": "node*.gpu*", "bytes": "4 MB"}}
    usual, other = (
        run("scale/planning-cluster", op, **{"let.nodes": 2, "machine.node.nic.bandwidth": rate})
        for rate in ("0.4 Tb/s", "800 Gb/s")
    )
    assert case(usual) != "generation" == case(other)


def _holds(kind: str, name: str, label: str, number: FileNumber) -> None:
    op = OPS[kind][label]
    try:
        usual = run(alone(kind, name), op)
    except hwsim.SpecError:
        return  # no such op on it
    twice, tenfold = (seconds(kind, name, op, number, factor) for factor in (2, 10))
    place = f"{label} on {name}, {number.key}"
    if twice is not None:
        assert twice <= usual.makespan_s * (1 + 1e-9), place
    if twice is not None and tenfold is not None:
        assert tenfold <= twice * (1 + 1e-9), place


@given(st.data())
def test_a_better_number_never_slows_an_op(data: st.DataObject) -> None:
    kind, name = data.draw(st.sampled_from(PARTS))
    numbers = numbers_of(kind, name)
    if numbers:
        _holds(kind, name, data.draw(st.sampled_from(sorted(OPS[kind]))), data.draw(st.sampled_from(numbers)))


@given(st.data())
def test_the_same_number_changes_nothing(data: st.DataObject) -> None:
    kind, name = data.draw(st.sampled_from(PARTS))
    numbers = numbers_of(kind, name)
    if not numbers:
        return
    number = data.draw(st.sampled_from(numbers))
    op = OPS[kind][data.draw(st.sampled_from(sorted(OPS[kind])))]
    try:
        usual = run(alone(kind, name), op)
    except hwsim.SpecError:
        return
    again = run(alone(kind, name), op, **{number.path: number.times(1)})
    assert (again.makespan_s, again.interval) == (usual.makespan_s, usual.interval)


def test_a_number_of_kernels_of_one_version_can_be_stated_anew() -> None:
    """A dot of the version in `vllm-0.12 fp8-block` separates no keys."""
    [number] = [each for each in numbers_of("gpu", "gb200") if each.key == "experts.vllm-0.12 fp8-block.passing"]
    layer = {"device": "it", "tokens": 600, "hidden": 2048, "inner": 1024, "experts": 16, "top_k": 4, "weights": "fp8-block"}
    op: Op = {"moe": {**layer, "kernel": "vllm-0.12"}}
    usual, slower = (run(alone("gpu", "gb200"), op, **{number.path: number.times(factor)}) for factor in (1, 0.1))
    assert usual.makespan_s == run(alone("gpu", "gb200"), op).makespan_s < slower.makespan_s


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_a_better_number_never_slows_an_op_of_the_whole_catalogue(kind: str, name: str) -> None:
    cases = [(label, number) for number in numbers_of(kind, name) for label in OPS[kind]]
    for label, number in random.Random(name).sample(cases, min(COUNT, len(cases))):
        _holds(kind, name, label, number)
