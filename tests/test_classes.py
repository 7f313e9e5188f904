"""What a part leaves out comes from its class; nothing is free or at its peak because somebody left it out."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import hwsim
from hwsim import api
from hwsim.devices import Device, Gpu
from hwsim.devices.accesses import Accesses
from hwsim.machine import classes
from hwsim.machine.classes import with_class_defaults
from hwsim.origins import case_of
from hwsim.spec import Origin, SpecError, Tree, find, names, read, tree_of
from tests import command
from tests.each import each

DATASHEET = (
    "kind: gpu, {who} flop: {{fp32: 67 TFLOP/s, bf16: 989.4 TFLOP/s}}, memory: {{size: 80 GB, bandwidth: 3.35 TB/s}}{more}"
)
WHO = "vendor: nvidia, generation: hopper,"


def gpu(who: str = WHO, more: str = ", sms: 132, clock: 1.98 GHz", top: str = "") -> Gpu:
    text = f"hwsim: machine/1\n{top}parts: {{it: {{{DATASHEET.format(who=who, more=more)}}}}}\n"
    model = api.load_machine(text).device("it").model
    assert isinstance(model, Gpu)
    return model


def test_a_datasheet_is_filled_in_and_says_from_where() -> None:
    found = gpu()
    assert str(found.sources["launch.stream"]).startswith("default: nvidia/hopper, ")
    assert case_of(found.sources["launch.stream"]) == "device"
    assert case_of(found.sources["copies.setup"]) == "generation"
    assert case_of(found.sources["efficiency.vector"]) == "outside"
    assert found.l2 is not None
    assert 100e-9 < found.l2.latency < found.l2.far < found.l2.miss < 1e-6
    assert found.matmul["bf16"].loads == pytest.approx(150e9, rel=0.1)
    assert found.matmul["bf16"].rows == 128
    assert found.efficiency.matmul == 1.0  # what tiles lose is in their own efficiency


def test_units_at_half_rate_have_the_flops_of_full_ones_up_to_their_peak() -> None:
    ada = "kind: gpu, vendor: nvidia, generation: ada, sms: 142, clock: 2.52 GHz, memory: {size: 48 GB, bandwidth: 864 GB/s}"
    full, half = (
        api.load_machine(f"hwsim: machine/1\nparts: {{it: {{{ada}, flop: {{bf16: {peak} TFLOP/s}}}}}}\n").device("it").model
        for peak in (362, 181)
    )
    assert isinstance(full, Gpu)
    assert isinstance(half, Gpu)
    tiles, slowed = full.matmul["bf16"], half.matmul["bf16"]
    assert tiles.efficiency == pytest.approx(0.689)
    assert slowed.efficiency == 1.0
    assert slowed.loads == pytest.approx(tiles.loads, rel=0.15)


def test_what_is_stated_is_never_touched() -> None:
    stated = gpu(more=", launch: 0 s, sustained: {copy: 100 %}, copies: {setup: 0 s}, l2: {size: 1 MiB}")
    assert stated.launch == 0.0
    assert (stated.sustained.copy, stated.copies.setup) == (1.0, 0.0)
    assert stated.l2 is not None
    assert stated.l2.size == 2**20
    assert stated.l2.miss > 1e-7


def test_ideal_is_asked_for() -> None:
    for ideal in (gpu(top="class: ideal\n"), gpu(who="class: ideal,")):
        assert not any(source.kind == "default" for source in ideal.sources.values())
        assert (ideal.launch, ideal.matmul, ideal.l2, ideal.efficiency.matmul) == (0.0, {}, None, 1.0)


def test_multiprocessors_follow_from_the_peak() -> None:
    bare = gpu(more="")
    assert bare.sms == 132
    assert str(bare.sources["sms"]).startswith("default: nvidia/hopper")
    assert "bf16" in bare.matmul


def test_a_generation_that_nobody_knows_has_a_usual_number_of_multiprocessors() -> None:
    bare = gpu(who="vendor: nvidia, generation: rubin,", more="")
    assert bare.sms == 132
    assert str(bare.sources["sms"]).startswith("default: nvidia, other generations")
    assert "bf16" in bare.matmul
    stated = gpu(who="vendor: nvidia, generation: rubin,", more=", efficiency: {matmul: 60 %}")
    assert (stated.sms, stated.matmul) == (None, {})  # a stated share of the peak holds for all products


@pytest.mark.parametrize("shape", [(8192, 8192, 8192), (8, 8192, 8192), (256, 512, 512)])
def test_an_interval_is_no_narrower_where_less_is_known(shape: tuple[int, int, int]) -> None:
    halves = []
    for who in (WHO, "vendor: nvidia, generation: rubin,", "vendor: acme,"):
        m, n, k = shape
        machine = f"hwsim: machine/1\nparts: {{it: {{{DATASHEET.format(who=who, more='')}}}}}\n"
        workload = f"hwsim: workload/1\nprogram: [{{matmul: {{device: it, m: {m}, n: {n}, k: {k}, dtype: bf16}}}}]\n"
        halves.append(hwsim.simulate(machine, workload).interval.half)
    assert all(known <= 1.01 * less for known, less in itertools.pairwise(halves))  # a hundredth: its parts add up otherwise
    assert halves[-1] > halves[0] > 0.1


def test_a_part_that_does_not_say_its_class_is_told_by_its_name_or_peaks_with_a_warning() -> None:
    for who, told in (
        ("name: NVIDIA A100 SXM,", "nvidia/ampere"),
        ("name: AMD Instinct MI325X,", "amd/cdna3"),
        ("", "nvidia/ampere"),
    ):
        text = f"hwsim: machine/1\nparts: {{it: {{{DATASHEET.format(who=who, more='')}}}}}\n"
        warnings = api.load_machine(text).warnings
        assert [warning.code for warning in warnings] == ["class-guessed"]
        assert told in warnings[0].text


def test_a_generation_without_a_file_is_as_its_vendor() -> None:
    assert "nvidia, other generations" in str(gpu(who="vendor: nvidia, generation: rubin,").sources["launch.stream"])


def test_an_unknown_class_is_a_mistake() -> None:
    with pytest.raises(SpecError, match=r"unknown class 'nvidia/hoper' of gpu"):
        gpu(who="class: nvidia/hoper,")


@each("name", names("class"))
def test_every_number_of_a_class_says_its_devices_and_its_spread(name: str) -> None:
    part = tree_of({"sms": 100, "clock": "1 GHz", "memory": {"bandwidth": "1 TB/s"}, "class": name.partition("/")[2] or "none"})
    kind = name.partition("/")[0]
    assert read(find("class", name)).text("kind") == kind
    for origin in origins(with_class_defaults(part, kind)):
        of, devices, spread = origin.ref.rsplit(", ", 2)
        assert of
        assert devices == "no data" or devices.split()[1] in ("part", "parts")
        assert devices != "no data" or of.startswith("outside")
        assert 0 < int(spread.removesuffix(" %")) < 400


def origins(tree: Tree) -> list[Origin]:
    inner = [origin for _, child in tree.items() for origin in origins(child)]
    return inner + ([tree.origin] if tree.origin is not None and tree.origin.kind == "default" else [])


def test_a_shown_file_is_filled_in_anew(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(f"hwsim: machine/1\nparts: {{it: {{{DATASHEET.format(who=WHO, more='')}}}}}\n")
    shown = command.hwsim("show", tmp_path / "a.yaml").output
    assert "    # launch:\n    #   stream: " in shown
    model = api.load_machine(shown).device("it").model
    assert isinstance(model, Gpu)
    assert str(model.sources["launch.stream"]).startswith("default: nvidia/hopper")


def test_members_of_an_array_are_completed_as_well() -> None:
    disk = "{kind: raid, level: 0, members: 2, ssd: {read: 3 GB/s, write: 2 GB/s}}"
    found = api.load_machine(f"hwsim: machine/1\nparts: {{d: {disk}}}\n").device("d").model
    assert isinstance(found, Device)
    assert str(found.sources["ssd.latency"]).startswith("default: ssd")


# ---- laws of all parts of the library ----


def library(name: str) -> Gpu:
    model = api.load_machine(f"hwsim: machine/1\nparts: {{it: {{kind: gpu, use: {name}}}}}\n").device("it").model
    assert isinstance(model, Gpu)
    return model


GPUS = [name for name in names("gpu") if not name.startswith("d2l")]


@each("name", GPUS)
def test_no_gpu_is_ideal(name: str) -> None:
    found = library(name)
    chased = found.access("it", Accesses(count=1e6, size=8.0, pattern="dependent", working_set=1e9))
    assert chased.demand.alone({"it.memory": 1.0}) / 1e6 > 100e-9
    assert found.copies.setup + found.copies.fetch > 1e-6
    assert not isinstance(found.launch, float)
    assert found.launch.stream > 1e-6
    assert max(found.sustained.read, found.sustained.copy, found.sustained.write) < 1.0
    assert found.vendor
    assert found.generation


@each("name", GPUS)
def test_a_small_copy_takes_more_than_a_microsecond(name: str) -> None:
    text = (
        f"hwsim: machine/1\nparts: {{cpu: {{kind: cpu, use: epyc-7742}}, it: {{kind: gpu, use: {name}, lanes: 16}}}}\n"
        "links: [{between: [cpu, it], kind: pcie, gen: 4, lanes: 16}]\n"
    )
    run = api.simulate(text, "hwsim: workload/1\nprogram: [{copy: {from: cpu, to: it, bytes: 1 kB}}]\n")
    assert run.timeline.makespan > 1e-6


# ---- comparing ----


def test_parts_that_are_not_known_alike_are_compared_with_a_warning(tmp_path: Path) -> None:
    mine = DATASHEET.format(who=WHO, more=", sms: 132, clock: 1.98 GHz").replace("kind: gpu,", "hwsim: part/1, kind: gpu,")
    (tmp_path / "mine.yaml").write_text(f"{{{mine}}}\n")
    machine, workload = (
        tmp_path / "machine.yaml",
        "hwsim: workload/1\nprogram: [{matmul: {m: 4096, n: 4096, k: 4096, dtype: bf16}}]\n",
    )
    machine.write_text("hwsim: machine/1\nparts: {gpu: {kind: gpu, use: h100-sxm}}\n")
    uses = ["h100-sxm", str(tmp_path / "mine.yaml"), "h200-sxm"]
    found = hwsim.sweep(machine, workload, {"machine.gpu.use": uses}, workers=1)
    assert [[warning.code for warning in row.warnings] for row in found.rows] == [[], ["mixed-provenance"], []]
    said = found.rows[1].warnings[0].text
    assert "mine.yaml rests on class defaults (±" in said
    assert "h100-sxm rests on measurements (±" in said
    alike = hwsim.sweep(machine, workload, {"machine.gpu.clock": ["1.5 GHz", "1.98 GHz"]}, workers=1)
    assert not any(row.warnings for row in alike.rows)


def test_a_class_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []

    def noted(path: Path) -> Tree:
        asked.append(path)
        return read(path)

    monkeypatch.setattr(classes, "read", noted)
    classes._file.cache_clear()
    api.load_machine("dgx-h100")
    assert len(asked) == len(set(asked)) > 5
