"""`hwsim latency`: rows from the machine's own parts, and what must hold for any machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hwsim import api
from hwsim.spec import names
from hwsim.views.latency.find import KEYS, LatencyRow, MissingRow
from hwsim.views.latency.find import find as latencies
from tests.command import hwsim

TEXT = "d2l-latency"


def rows(machine: str, **settings: str) -> dict[str, float]:
    """Seconds by key."""
    from hwsim.functions.files import machine_with

    found = latencies(machine_with(machine, {path.replace("__", "."): value for path, value in settings.items()}))
    return {row.key: row.seconds for row in found.rows}


def test_the_machine_of_the_text_has_every_row_of_the_text_within_a_fifth() -> None:
    found = latencies(api.load_machine(TEXT))
    assert [row.probe.key for row in found.missing if row.probe.text_s is not None] == []
    assert {row.key: row.ratio for row in found.rows if row.ratio is not None and not 0.8 <= row.ratio <= 1.2} == {}


def test_every_row_is_unique_and_either_found_or_missing_with_a_reason() -> None:
    assert len(set(KEYS)) == len(KEYS)
    found = latencies(api.load_machine("dgx-a100"))
    assert sorted([*(row.key for row in found.rows), *(row.probe.key for row in found.missing)]) == sorted(KEYS)
    assert all(row.reason for row in found.missing)
    assert isinstance(found.row("l1"), LatencyRow)
    assert isinstance(found.row("wan"), MissingRow)
    with pytest.raises(KeyError):
        found.row("l9")


@pytest.mark.parametrize("name", names("machine"))
def test_every_machine_of_the_library_has_rows_that_are_positive_and_derived(name: str) -> None:
    found = latencies(api.load_machine(name))
    for row in found.rows:
        assert 0 < row.seconds < 1, row.key
        assert row.why, row.key
        assert max(term.seconds for term in row.why) <= row.seconds * 1001, row.key
    kept = {row.key: row.seconds for row in found.rows}
    levels = [kept[key] for key in ("l1", "l2", "l3", "memory-64mb", "memory-256mb") if key in kept]
    assert levels == sorted(levels)
    gpu = [kept[key] for key in ("gpu-shared", "gpu-l2", "gpu-global") if key in kept]
    assert gpu == sorted(gpu)


BETTER = [
    ("machine.parts.cpu.clock", "3.2 GHz"),
    ("machine.parts.cpu.memory.latency", "60 ns"),
    ("machine.parts.cpu.core.mispredict", "10"),
    ("machine.parts.cpu.core.ipc", "4"),
    ("machine.parts.cpu.coherence.cluster", "20 ns"),
    ("machine.parts.cpu.coherence.sockets", "30 ns"),
    ("machine.parts.cpu.numa.remote_latency", "30 ns"),
    ("machine.parts.cpu.caches.levels.L3.size", "100 MiB"),
    ("machine.parts.cpu.caches.levels.L2.cycles", "9"),
    ("machine.parts.cpu.core_bandwidth", "20 GB/s"),
    ("machine.parts.gpu.l1.latency", "20 ns"),
    ("machine.parts.gpu.l2.miss", "180 ns"),
    ("machine.parts.gpu.launch", "4 us"),
    ("machine.parts.nvme.latency", "60 us"),
    ("machine.parts.nvme.read", "7 GB/s"),
    ("machine.parts.sata.write_latency", "60 us"),
    ("machine.parts.hdd.latency", "5 ms"),
    ("machine.parts.spine.latency", "1 us"),
    ("machine.links.qpi.latency", "20 ns"),
    ("machine.links.slots.gen", "4"),
    ("machine.links.nvlink.links", "4"),
    ("machine.links.ocean.length", "9000 km"),
    ("machine.links.fabric nic.latency", "50 ns"),
]


@pytest.mark.parametrize(("path", "value"), BETTER)
def test_a_faster_part_makes_some_row_faster_and_none_slower(path: str, value: str) -> None:
    before, after = rows(TEXT), rows(TEXT, **{path.replace(".", "__"): value})
    assert before.keys() == after.keys()
    assert {key: (before[key], after[key]) for key in before if after[key] > before[key] * (1 + 1e-9)} == {}
    assert any(after[key] < before[key] for key in before), path


def test_caches_serve_a_part_of_a_small_set_and_the_rest_is_memory() -> None:
    found = rows(TEXT)
    l3, held = 42 / 2.6e9, 35 / 64
    assert found["memory-64mb"] == pytest.approx(held * l3 + (1 - held) * 83e-9, rel=0.01)


def test_a_machine_of_one_disk_has_the_rows_of_that_disk(tmp_path: Path) -> None:
    path = tmp_path / "disk.yaml"
    path.write_text("hwsim: machine/1\nclass: ideal\nparts: {disk: {kind: disk, use: d2l-hdd}}\n")
    assert list(rows(str(path))) == ["disk-read-1mb", "disk-read-4kb"]


# ---- the command


def test_the_text_and_the_json_have_the_same_rows() -> None:
    printed = hwsim("latency", TEXT)
    found = json.loads(hwsim("latency", TEXT, "--json").stdout)
    assert all(row["name"] in printed.stdout for row in found["rows"])
    assert not any(row["name"] in printed.stdout for row in found["not_available"])
    every = hwsim("latency", TEXT, "--all").stdout
    assert all(row["name"] in every and row["reason"] in every for row in found["not_available"])


def test_a_row_is_explained_with_the_sources_of_its_numbers() -> None:
    done = hwsim("latency", TEXT, "--explain", "mispredict")
    assert "16" in done.stdout
    assert "core.mispredict: d2l 13.4" in done.stdout
    assert "not available" in hwsim("latency", TEXT, "--explain", "wifi-4kb").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((TEXT, "--explain", "memory-64"), "memory-64mb"),
        ((TEXT, "--explain", "l1", "--json"), "--explain cannot be combined with --json or --all"),
        ((TEXT, "--plot", "rows.txt"), ".png, .svg or .pdf"),
        (("d2l-latenzy",), "d2l-latency"),
        ((TEXT, "--set", "machine.parts.cpu.clok=3 GHz"), "clok"),
    ],
)
def test_mistakes_are_exit_2_and_say_what_to_write(arguments: tuple[str, ...], said: str) -> None:
    done = hwsim("latency", *arguments, code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_the_machine_may_be_standard_input() -> None:
    text = "hwsim: machine/1\nclass: ideal\nparts: {disk: {kind: disk, use: d2l-hdd}}\n"
    done = hwsim("latency", "-", stdin=text)
    assert done.stdout.startswith("latency numbers, on machine\n")


def test_a_machine_that_says_nothing_has_no_rows_and_no_figure(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("hwsim: machine/1\nclass: ideal\nparts: {psw: {kind: switch}}\n")
    done = hwsim("latency", path)
    assert "--all lists them" in done.stdout
    hwsim("latency", path, "--plot", tmp_path / "a.png", code=2)
