"""A name tells nothing: parts called by any words give the same numbers, from every command."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

import hwsim
from hwsim.cli import main

MACHINE: Final = """\
hwsim: machine/1
name: a server
collectives: {kind: nccl, use: nvlink3}
price: {purchase: 100000 USD, source: guess}
parts:
  CPU: {kind: cpu, use: epyc-7742, memory: {size: 256 GB, bandwidth: 100 GB/s}}
  GPU: {kind: gpu, use: a100-sxm-40gb, count: 4}
  PSW: {kind: switch}
  NVS: {kind: switch}
  DISK: {kind: disk, read: 3 GB/s, write: 2 GB/s, latency: 100 us, size: 1 TB}
  NIC: {kind: nic, bandwidth: 100 Gb/s}
links:
  - {name: UPLINK, between: [CPU, PSW], kind: pcie, use: pcie4-x16}
  - {name: SLOTS, between: [PSW, GPU*], kind: pcie, use: pcie4-x16}
  - {name: FAST, between: [NVS, GPU*], kind: nvlink, use: nvlink3}
  - {name: DRIVE, between: [PSW, DISK], kind: pcie, use: pcie4-x4}
  - {name: CARD, between: [PSW, NIC], kind: pcie, use: pcie4-x16}
"""
PROGRAM: Final = """\
hwsim: workload/1
let: {n: 6}
runtime: {dispatch: 5 us, return: 5 us}
program:
  - repeat:
      times: $n
      do:
        - read: {from: DISK, bytes: 300 MB}
        - busy: {device: CPU, time: 20 ms, times: 8, workers: 8}
        - copy: {from: CPU, to: GPU0, bytes: 300 MB}
        - matmul: {device: GPU0, m: 4096, n: 4096, k: 4096, dtype: fp16}
        - elementwise: {device: GPU1, count: 1e8, dtype: fp32}
        - random: {device: CPU, count: 1e6}
        - allreduce: {among: GPU*, bytes: 100 MB}
  - wait: all
"""
TRAIN: Final = "hwsim: workload/1\ntrain: {model: bert-base, global_batch: 32, sequence: 128, steps: 2, device: GPU*}\n"
SERVE: Final = """\
hwsim: workload/1
infer: {model: gpt2, parallel: {tp: 2}, requests: 30, arrivals: {every: 50 ms}, prompt: 100, output: 20}
"""
PLAN: Final = """\
hwsim: plan/1
machine: m.yaml
workload: w.yaml
vary: {workload.runtime.dispatch: [5 us, 50 us]}
require: [busy at least 1 %]
minimise: time
"""
NAMES: Final = {
    name: name.lower() for name in ("CPU", "GPU", "PSW", "NVS", "DISK", "NIC", "UPLINK", "SLOTS", "FAST", "DRIVE", "CARD")
}
OTHERS: Final = (
    {"GPU": "accel", "CPU": "host", "DISK": "store", "NIC": "port", "PSW": "a", "NVS": "b"},
    {"GPU": "cpu", "CPU": "gpux", "DISK": "nic", "NIC": "disk"},  # as others are called
    {"GPU": "memory", "CPU": "compute", "DISK": "cores", "NIC": "link", "UPLINK": "gpu", "SLOTS": "nvlink", "FAST": "pcie"},
    {"GPU": "rx", "CPU": "tx", "DISK": "gpu-store", "NIC": "media", "NVS": "line", "PSW": "cpu-switch"},
)
COMMANDS: Final = (
    ("simulate m.yaml w.yaml --json --ops", PROGRAM),
    ("simulate m.yaml w.yaml --json --ops --prices library", TRAIN),
    ("simulate m.yaml w.yaml --json", SERVE),
    ("explain m.yaml w.yaml --json", PROGRAM),
    ("explain m.yaml w.yaml --json", TRAIN),
    ("sensitivity m.yaml w.yaml --json", PROGRAM),
    ("plan plan.yaml --json", PROGRAM),
    ("compare m.yaml m.yaml w.yaml --set-b machine.GPU.count=2 --json", TRAIN),
    ("roofline m.yaml --json", ""),
    ("roofline m.yaml w.yaml --json", PROGRAM),
    ("latency m.yaml --json", ""),
    ("collectives m.yaml --json", ""),
    ("estimate m.yaml gpt2 --global-batch 32 --json", ""),
    ("export kineto m.yaml w.yaml -o out", PROGRAM),
)


def called(text: str, names: Mapping[str, str]) -> str:
    """The text with the names put in."""
    for name, word in {**NAMES, **names}.items():
        text = text.replace(name, word)
    return text


def written(folder: Path, names: Mapping[str, str], workload: str) -> None:
    folder.mkdir(exist_ok=True)
    for file, text in (("m.yaml", MACHINE), ("w.yaml", workload), ("plan.yaml", PLAN)):
        (folder / file).write_text(called(text, names), encoding="utf-8")


def numbers(value: Any) -> Iterator[float]:
    """All numbers of a document."""
    if isinstance(value, bool | str) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value)
    else:
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)


def told(folder: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, command.split(), prog_name="hwsim")
    assert done.exit_code in (0, 3), done.output
    if "--json" not in command:
        return []
    document, _ = json.JSONDecoder().raw_decode(done.stdout)
    return sorted(numbers(document))


@pytest.mark.parametrize(("command", "workload"), COMMANDS, ids=[f"{at} {command}" for at, (command, _) in enumerate(COMMANDS)])
def test_parts_by_any_name_give_the_same_numbers(
    command: str, workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for at, names in enumerate(({}, *OTHERS)):
        written(tmp_path / str(at), names, workload)
        found.append(told(tmp_path / str(at), called(command, names), monkeypatch))
    for at, each in enumerate(found[1:]):
        assert each == pytest.approx(found[0], rel=1e-12), OTHERS[at]


def test_a_written_run_compares_with_a_profile_whatever_its_parts_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time between kernels on a GPU is a launch gap, on a host it is not: the kind of the device says which it is."""
    found = []
    for at, names in enumerate(({}, *OTHERS)):
        folder = tmp_path / str(at)
        written(folder, names, TRAIN)
        told(folder, "export kineto m.yaml w.yaml -o out", monkeypatch)
        run = CliRunner().invoke(main, ["simulate", "m.yaml", "w.yaml", "--json", "--ops"])
        (folder / "run.json").write_text(run.stdout, encoding="utf-8")
        found.append(told(folder, "compare run.json out --json", monkeypatch))
    assert all(each == pytest.approx(found[0], rel=1e-9) for each in found[1:])


RESOURCES: Final = ("compute", "cores", "iops", "line", "media", "memory", "ring", "rx", "tx")
KINDS: Final = ("cpu", "disk", "gpu", "nic", "switch")
HOME: Final = "demand.py"  # `parted` knows how capacities are called
LEGIT: Final = {
    "comparing/recorded/where.py",  # names that importers give, of devices that no machine has
}


def told_by_names(tree: ast.AST) -> Iterator[int]:
    """Lines that ask whether a name begins, ends or goes on with what a resource or a kind of device is called."""
    for node in ast.walk(tree):
        words: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith", "removesuffix", "removeprefix", "find", "index"):
                words = [each for given in node.args for each in (given.elts if isinstance(given, ast.Tuple) else [given])]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            of = ast.unparse(node.comparators[0])
            words = [node.left] if of.endswith((".capacity", ".name", ".device", "capacity", "device", "name")) else []
        texts = [each.value for each in words if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if any(text.strip(".*") in (*RESOURCES, *KINDS) for text in texts):
            yield getattr(node, "lineno", 0)


def test_no_decision_is_made_by_a_name() -> None:
    package = Path(hwsim.__file__).parent
    found = [
        f"{path.relative_to(package)}:{line}"
        for path in sorted(package.rglob("*.py"))
        if path.name != HOME and path.relative_to(package).as_posix() not in LEGIT
        for line in told_by_names(ast.parse(path.read_text("utf-8")))
    ]
    assert not found, "the kind of a device is in `run.devices`, the resource of a capacity in `hwsim.demand.parted`"


@pytest.mark.parametrize(
    "line", ['"gpu" in usage.capacity', 'name.endswith(".compute")', 'device.rpartition(".")[2].startswith("gpu")',
             'capacity.removesuffix(".cores")', 'name.endswith((".tx", ".rx"))']
)  # fmt: skip
def test_the_rule_finds_such_a_decision(line: str) -> None:
    assert list(told_by_names(ast.parse(line)))
