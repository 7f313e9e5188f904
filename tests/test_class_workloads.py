"""The workloads for class answer their questions: with the text's numbers, or with arithmetic that is done here again."""

from __future__ import annotations

import math
import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

import hwsim
from hwsim.spec import find, names, read
from hwsim.units import parse

HARDWARE = (
    "cache-starvation", "channel-layout", "cloud-iops", "dma-or-cpu-copy", "dram-banks", "dram-random-vs-burst",
    "ethernet-small-messages", "false-sharing", "hdd-density", "hdd-random-vs-sequential", "hdd-worst-rotation",
    "measure-cache-size", "measure-disk-cache", "misaligned-access", "pcie-lanes-shared", "sf-amsterdam-round-trip",
    "ssd-queue-depth", "ssd-small-writes", "stride", "tensor-cores", "vectorise",
)  # fmt: skip


def machine_of(workload: str) -> str:
    expect = read(find("workload", f"d2l/{workload}")).get("expect")
    assert expect is not None
    return str(expect.text("machine"))


def each(workload: str, machine: str = "", **changed: object) -> dict[str, float]:
    """Seconds of the ops by name, of several the mean."""
    run = hwsim.simulate(machine or machine_of(workload), f"d2l/{workload}", set=changed)
    found: dict[str, list[float]] = {}
    for op in run.ops:
        found.setdefault(op.name, []).append(op.duration_s)
    return {name: math.fsum(times) / len(times) for name, times in found.items()}


def note(workload: str) -> str:
    """What the comment at the head of the file says."""
    text = find("workload", f"d2l/{workload}").read_text("utf-8")
    return " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))


# ---- all of them


@pytest.mark.parametrize("name", HARDWARE)
def test_a_workload_for_class_fits_a_screen_and_shows_its_ops(name: str) -> None:
    text = str(hwsim.simulate(machine_of(name), f"d2l/{name}"))
    lines = text.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert "VIOLATED" not in text
    shown: list[str] = []
    for line in lines:
        label, columns, _ = line.strip().partition("  ")
        if shown and label and not columns:  # a long name goes on in the next line
            shown[-1] += f" {label}"
        else:
            shown.append(label)
    for op in each(name):
        assert op in shown, op


CHANGES = re.compile(r'(?:--set (?:"[^"]+"|[\w.]+=(?:"[^"]+"|[\w.-]*\w)) ?)+')


@pytest.mark.parametrize("name", HARDWARE)
def test_what_a_note_says_can_be_typed(name: str) -> None:
    typed = CHANGES.findall(note(name))
    assert typed, "the note does not say how to vary it"
    for changes in typed:
        words = [word for word in shlex.split(changes) if word != "--set"]
        machine = "desktop" if words == ["disk=disk"] else machine_of(name)
        assert hwsim.simulate(machine, f"d2l/{name}", set=dict(word.split("=", 1) for word in words)).makespan_s > 0


def test_every_workload_for_class_is_in_the_lab_sheet_and_the_library(root: Path) -> None:
    known = set(names("workload"))
    sheet = (root / "docs" / "class.md").read_text("utf-8")
    for name in HARDWARE:
        assert f"d2l/{name}" in known
        assert f"d2l/{name}" in sheet


# ---- memory


def test_the_first_word_costs_as_much_as_five_hundred() -> None:
    took = each("dram-random-vs-burst")
    assert took["random reads"] / 1e6 == pytest.approx(100e-9, rel=1e-6)
    assert took["burst read"] / 1e6 == pytest.approx(0.2e-9, rel=1e-3)
    assert took["random reads"] / took["burst read"] == pytest.approx(500, rel=1e-3)
    assert 1e6 / took["random reads"] == pytest.approx(10e6)


def test_four_banks_do_four_times_the_random_reads_and_more_are_not_there() -> None:
    times = [each("dram-banks", banks=banks)["read"] for banks in (1, 2, 4)]
    assert times == pytest.approx([0.1, 0.05, 0.025], rel=0.01)


def test_four_cores_ask_for_256_gb_a_second_and_get_40() -> None:
    took = each("cache-starvation")
    asked = 8e9 * 32
    assert asked / took["load from cache"] == pytest.approx(4 * 32 * 2e9)
    assert asked / took["load from memory"] == pytest.approx(40e9)
    one = each("cache-starvation", **{"machine.cpu.memory.bandwidth": "20 GB/s"})
    assert one["load from memory"] / took["load from cache"] == pytest.approx(256 / 20)
    assert each("cache-starvation", again="64 MiB")["load from cache"] == pytest.approx(took["load from memory"])


def test_a_misaligned_number_costs_the_lines_it_crosses_into() -> None:
    took = each("misaligned-access")
    assert took["array - misaligned"] / took["array - aligned"] == pytest.approx(1 + 1 / 8)
    assert took["strided - line split"] / took["strided - aligned"] == pytest.approx(2)
    assert took["random - line split"] / took["random - aligned"] == pytest.approx(2)
    none = each("misaligned-access", offset="0 B")
    assert none["array - misaligned"] == pytest.approx(none["array - aligned"])


def test_a_stride_brings_whole_lines_and_backward_is_as_fast_as_forward() -> None:
    took = each("stride")
    assert took["forward - contiguous"] == pytest.approx(1e8 * 8 / 40e9)
    assert took["forward - 16 B stride"] / took["forward - contiguous"] == pytest.approx(2)
    assert took["forward - 64 B stride"] / took["forward - contiguous"] == pytest.approx(8)
    assert took["forward - 4 KiB stride"] == pytest.approx(1e8 * 100e-9 / (4 * 10))
    for how in ("contiguous", "64 B stride"):
        assert took[f"backward - {how}"] == took[f"forward - {how}"]
    times = [each("stride", stride=f"{step} B", numbers=0)["forward - custom stride"] for step in (8, 16, 32, 64, 128, 4096)]
    assert times == sorted(times)


def test_the_time_of_an_access_jumps_where_a_cache_ends() -> None:
    took = each("measure-cache-size")
    assert took["pointer chase - 16 KiB"] / 1e6 == pytest.approx(4 * 0.5e-9)
    assert took["pointer chase - 128 KiB"] / 1e6 == pytest.approx((0.25 * 4 + 0.75 * 12) * 0.5e-9)
    assert took["pointer chase - 1 GiB"] / 1e6 == pytest.approx(100e-9, rel=0.01)
    sizes = [2**power * 1024 for power in range(3, 17)]
    times = [each("measure-cache-size", set=f"{size} B", steps=0)["pointer chase - custom size"] for size in sizes]
    assert times == sorted(times)
    jumps = {size for size, one, two in zip(sizes, times, times[1:], strict=False) if two / one > 1.9}
    assert jumps == {32 * 1024, 256 * 1024, 8 * 1024**2}


def test_four_channels_in_turns_are_four_times_one() -> None:
    took = each("channel-layout")
    assert took["stream - 1 channel"] / took["stream - 4 channels"] == pytest.approx(4, rel=1e-3)
    assert took["random - 1 channel"] / took["random - 4 channels"] == pytest.approx(4, rel=1e-3)
    assert 1.024e9 / took["stream - 1 channel"] == pytest.approx(25.6e9, rel=0.06)


# ---- cores


def test_a_shared_line_makes_cores_wait_for_each_other() -> None:
    took = each("false-sharing")
    assert took["increment - shared line"] == pytest.approx(8 * 1e6 * 20.6e-9, rel=1e-3)
    assert took["increment - private lines"] == pytest.approx(1e6 * 20 / 3.6e9, rel=1e-3)
    shared = [each("false-sharing", cores=cores)["increment - shared line"] for cores in range(1, 9)]
    assert all(more > few for few, more in pairwise(shared))
    assert all(time > each("false-sharing", cores=1)["increment - private lines"] for time in shared[1:])


def test_vector_units_do_as_many_numbers_as_their_registers_hold() -> None:
    took = each("vectorise")
    gain = {name: took["scalar"] / took[name] for name in ("SSE", "AVX2", "AVX-512")}
    assert gain == pytest.approx({"SSE": 4, "AVX2": 8, "AVX-512": 16 * 2.6 / 3.8}, rel=1e-3)
    assert took["phone scalar"] / took["phone NEON"] == pytest.approx(4)
    assert took["scalar"] == pytest.approx(100e9 / (2 * 2 * 3.8e9), rel=1e-3)
    assert each("vectorise", dtype="fp64")["AVX2"] == pytest.approx(2 * took["AVX2"])


def test_tensor_cores_gain_by_fewer_bits_where_they_take_them() -> None:
    took = each("tensor-cores")
    assert took["T4 fp16"] / took["T4 int8"] == pytest.approx(2, rel=0.02)
    assert took["T4 int8"] / took["T4 int4"] == pytest.approx(2, rel=0.02)
    assert 5 < took["T4 fp32"] / took["T4 fp16"] < 20
    assert 5 < took["V100 fp32"] / took["V100 fp16"] < 20
    assert took["V100 fp16"] < took["V100 int8"] < took["V100 fp32"]
    assert took["T4 fp16 odd"] > 2 * took["T4 fp16"]
    assert took["V100 fp16 odd"] > 2 * took["V100 fp16"]
    assert each("tensor-cores", odd=4088)["T4 fp16 odd"] == pytest.approx(took["T4 fp16"], rel=0.02)


# ---- disks


def test_a_hard_disk_does_a_hundred_accesses_a_second() -> None:
    took = each("hdd-random-vs-sequential")
    assert 1000 / took["random reads"] == pytest.approx(100, rel=0.01)
    assert took["sequential reads"] == pytest.approx(10e-3 + 4096e3 / 200e6)
    sizes = [each("hdd-random-vs-sequential", size=size)["random reads"] for size in ("512 B", "4 KiB", "64 KiB", "1 MB")]
    assert sizes == sorted(sizes)


def test_a_real_hard_disk_seeks_and_waits_half_a_turn() -> None:
    took = each("hdd-random-vs-sequential", "desktop")["random reads"]
    assert took / 1000 == pytest.approx(7.4e-3 + 60 / 7200 / 2, rel=0.1)


def test_the_worst_wait_is_a_turn_and_the_mean_wait_half_of_one() -> None:
    took = each("hdd-worst-rotation")
    for rpm in (7200, 10000):
        assert took[f"{rpm} rpm - worst case"] / 1000 == pytest.approx(60 / rpm, rel=2e-3)
        assert took[f"{rpm} rpm - average"] / 1000 == pytest.approx(30 / rpm, rel=2e-3)
    assert took["7200 rpm - worst case"] / 1000 == pytest.approx(8.33e-3, rel=2e-3)


def test_tracks_hold_the_root_of_what_the_area_holds() -> None:
    took = each("hdd-density")
    rim, hub = took["1 Tb per square inch - outer track"], took["1 Tb per square inch - inner track"]
    assert hub / took["5 Tb per square inch - inner track"] == pytest.approx(math.sqrt(5), rel=2e-3)
    million_an_inch = 1e6 / 0.0254 / 8  # bytes a metre
    one_turn = hub / 1e9 * (2 * math.pi * 15e-3 * million_an_inch)
    assert one_turn == pytest.approx(60 / 7200, rel=2e-3)
    assert hub / rim == pytest.approx(31 / 15, rel=2e-3)


def test_an_ssd_needs_many_reads_under_way() -> None:
    took = each("ssd-queue-depth")
    rates = {int(name.split()[-1]): 64000 / seconds for name, seconds in took.items()}
    one = 120e-6 + 4096 / 3e9
    assert rates[1] == pytest.approx(1 / one)
    assert rates[4] == pytest.approx(4 / one)
    assert rates[64] == rates[256] == pytest.approx(500e3)
    assert list(rates.values()) == sorted(rates.values())


def test_a_small_write_costs_a_whole_block() -> None:
    took = each("ssd-small-writes")
    assert took["sequential writes"] == pytest.approx(2**28 / 1e9, rel=1e-3)
    assert took["random 256 KiB writes"] == pytest.approx(took["sequential writes"], rel=0.02)
    assert took["random 4 KiB writes"] / took["sequential writes"] == pytest.approx(64, rel=0.01)
    times = [took[f"random {size} KiB writes"] for size in (256, 64, 16, 4)]
    assert times == sorted(times)


def test_a_volume_bursts_until_its_credits_are_spent() -> None:
    took = each("cloud-iops")
    assert took["random reads - burst credits"] == pytest.approx(5.4e6 / (3000 - 1500))
    assert took["random reads - full dataset"] == pytest.approx(3600 + 10.8e6 / 1500)
    times = [each("cloud-iops", reads=reads)["random reads - full dataset"] for reads in (1e6, 10.8e6, 20e6)]
    assert times == sorted(times)
    bought = {"machine.disk.size": "1000 GiB"}
    assert each("cloud-iops", **bought)["random reads - full dataset"] == pytest.approx(21.6e6 / 3000)


def test_a_disk_cache_ends_where_the_rate_drops_to_that_of_the_platter() -> None:
    took = each("measure-disk-cache")
    rates = {size: size * 2**20 * 100 / took[f"reread {size} MiB"] for size in (8, 64, 256, 512)}
    assert [rates[size] for size in (8, 64, 256)] == pytest.approx([600e6] * 3, rel=0.01)
    assert rates[512] == pytest.approx(261e6, rel=0.01)


# ---- links


def test_lanes_behind_a_switch_are_all_there_for_one() -> None:
    took = each("pcie-lanes-shared")
    assert took == pytest.approx(
        {
            "x16 switch - one GPU": 5e-6 + 32e9 / 32e9,
            "x16 switch - both GPUs": 5e-6 + 32e9 / 16e9,
            "x8 each - one GPU": 5e-6 + 32e9 / 16e9,
            "x8 each - both GPUs": 5e-6 + 32e9 / 16e9,
        }
    )


def test_a_small_message_costs_its_handling_and_a_large_one_its_bytes() -> None:
    took = each("ethernet-small-messages")
    assert took["small messages - UDP"] == pytest.approx(10_000 * 2e-6, rel=0.01)
    assert took["small messages - TCP"] == pytest.approx(10_000 * 2.5e-6, rel=0.01)
    for protocol, headers in (("UDP", 28), ("TCP", 52)):
        frames = math.ceil(1e6 / (1500 - headers))
        wire = (1e6 + frames * (headers + 38)) / (10e9 / 8)
        assert wire < took[f"one large message - {protocol}"] < 1.1 * wire
        assert took[f"small messages - {protocol}"] > 20 * took[f"one large message - {protocol}"]
    times = [each("ethernet-small-messages", messages=count)["small messages - TCP"] for count in (1, 10, 100, 10_000)]
    assert times == sorted(times)


def test_dma_wins_where_much_is_copied_and_leaves_the_cores_alone() -> None:
    took = each("dma-or-cpu-copy")
    assert took["small copy - CPU core"] < took["small copy - DMA"] / 3
    assert took["large copy - DMA"] < took["large copy - CPU core"] < took["large copy - pageable"]
    work, copied = 6.4e9 / 64e9, took["large copy - CPU core"]
    assert took["compute during DMA copy"] == pytest.approx(work)
    assert took["compute during CPU copy"] == pytest.approx(copied + work - 0.75 * copied, rel=1e-3)


def test_light_in_glass_needs_a_tenth_of_a_second_there_and_back() -> None:
    took = each("sf-amsterdam-round-trip")
    assert sum(took.values()) == pytest.approx(2 * parse("10000 km").value / (2 / 3 * 299_792_458), rel=1e-3)
    half = each("sf-amsterdam-round-trip", **{"machine.links.fibre.length": "5000 km"})
    assert sum(half.values()) == pytest.approx(sum(took.values()) / 2, rel=1e-3)
