"""A name tells nothing: parts called by any words give the same numbers, from every command."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import hwsim
from tests import command

MACHINE: Final = """\
hwsim: machine/1
name: a server
collectives: {kind: nccl, use: nvlink3}
price: {purchase: 100000 USD}
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
DOWN: Final = """
events: [{at: 1 ms, part: DISK, down: 20 ms}, {at: 30 ms, part: GPU1, speed: 50 %}]
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
    ("simulate m.yaml w.yaml --json", PROGRAM + DOWN),
    ("simulate m.yaml w.yaml --json", TRAIN.replace(", device: GPU*", "")),
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
        for child in value.values() if isinstance(value, dict) else value:
            yield from numbers(child)


def told(folder: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.chdir(folder)
    done = command.hwsim(*words.split(), code=None)
    assert done.exit_code in (0, 3), done.output
    if "--json" not in words:
        return []
    document, _ = json.JSONDecoder().raw_decode(done.stdout)
    return sorted(numbers(document))


@pytest.mark.parametrize(
    ("command", "workload"),
    [pytest.param(*row, marks=pytest.mark.slow) if row[0].startswith("sensitivity") else row for row in COMMANDS],
    ids=[f"{index} {command}" for index, (command, _) in enumerate(COMMANDS)],
)
def test_parts_by_any_name_give_the_same_numbers(
    command: str, workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for index, names in enumerate(({}, *OTHERS)):
        written(tmp_path / str(index), names, workload)
        found.append(told(tmp_path / str(index), called(command, names), monkeypatch))
    for index, answer in enumerate(found[1:]):
        assert answer == pytest.approx(found[0], rel=1e-12), OTHERS[index]


def test_a_run_compares_with_a_profile_whatever_its_parts_are_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time between kernels on a GPU is a launch gap, on a host it is not: the kind of the device says which it is."""
    found = []
    for index, names in enumerate(({}, *OTHERS)):
        folder = tmp_path / str(index)
        written(folder, names, TRAIN)
        told(folder, "export kineto m.yaml w.yaml -o out", monkeypatch)
        found.append(told(folder, "compare m.yaml w.yaml out --json", monkeypatch))
    assert all(answer == pytest.approx(found[0], rel=1e-9) for answer in found[1:])


RESOURCES: Final = (
    "compute", "cores", "iops", "line", "media", "memory", "ring", "rx", "tx", "backplane", "tx_messages", "rx_messages", "wire",
)  # fmt: skip
KINDS: Final = ("cpu", "disk", "gpu", "nic", "switch")
SIGNS: Final = (".", ":", "->", "--", "<->", "/")  # between the words of a name
SPLITTING: Final = {  # functions of libraries, by their last word
    "split": ("re.split",), "fnmatch": ("fnmatch", "fnmatch.fnmatch"), "filter": ("fnmatch.filter",),
}  # fmt: skip
CUTS: Final = ("partition", "rpartition", "split", "rsplit", "find", "rfind", "index")
ENDS: Final = ("startswith", "endswith", "removeprefix", "removesuffix", "strip", "lstrip", "rstrip")
LEGIT: Final = {  # files and packages that cut texts at such signs, and why no kind of a capacity or device is told by that
    "cli/": "what a user types: files, options, paths of keys",
    "comparing/recorded/": "names of kernels and files of recordings",
    "comparing/sides.py": "paths of a document's keys",
    "costs/machine_price.py": "files of the library",
    "demand.py": "a fold lists the capacities of one kind by name; the kind is the record's",
    "devices/gpu_attention_cost.py": "keys of a file",
    "devices/offers.py": "units of prices",
    "explorer/": "what a user types: paths of keys, addresses",
    "families/services/state.py": "the job of a service, of its full name",
    "formats.py": "digits and units of numbers",
    "functions/": "files of the library, paths of keys",
    "importers/": "names of other programs",
    "machine/classes.py": "paths of keys and classes",
    "machine/hosts.py": "the full name of a device inside a machine, as its path",
    "machine/layout.py": "what a name that is asked for means: the path of machines to it",
    "machine/link_entries.py": "the machine around a device, by its full name",
    "machine/libraries/parser.py": "the machine around several, by their paths",
    "machine/net.py": "what a name that is asked for means",
    "machine/contents.py": "the machine that a full name is in: the only place that cuts it off",
    "machine/proportions.py": "paths of keys",
    "models/": "names of layers and files of checkpoints",
    "ops/exchange.py": "what a user calls the root",
    "planning/": "paths of keys, names of numbers",
    "results/activities.py": "the last word of an op's name, for rows by kind of work",
    "results/errors.py": "regimes of errors",
    "results/expect.py": "names of numbers that a file expects",
    "results/interval.py": "regimes of errors",
    "results/invariants.py": "names of numbers",
    "results/result.py": "the programs of a job are called after it",
    "sensitivities/": "paths of keys",
    "spec/": "what a file says: paths of keys, files, numbers",
    "studies/": "paths of keys, names of numbers",
    "units.py": "units",
    "views/animate/": "suffixes of files, printed numbers and names",
    "views/collectives/find.py": "sizes that a user types",
    "views/explain/": "paths of keys, and the names of a machine's parts as paths",
    "views/gantt/rows.py": "the name of a queue without its device, to print equal ones as one row",
    "views/interval/say.py": "regimes of errors",
    "views/kit/": "suffixes of files, names of numbers",
    "views/summary/capacities.py": "the full name of a capacity, to print it in words",
    "views/roofline/find.py": "the key that a source of a file names",
    "workload/load/traces.py": "dates",
    "workload/programs.py": "the machine around a machine, by their paths",
}


def asking(tree: ast.AST) -> list[ast.Call | ast.Compare]:
    """What may ask for a part of a text: calls, and whether something is in something."""
    return [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Call) or (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn))
    ]  # fmt: skip


def cuts(nodes: list[ast.Call | ast.Compare]) -> Iterator[int]:
    """Lines that cut a text at a sign between the words of a name, or ask whether it has one."""
    for node in nodes:
        words: list[ast.expr] = []
        signs: tuple[str, ...] = SIGNS
        called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if called in SPLITTING and ast.unparse(node.func) in SPLITTING[called]:
            yield node.lineno
        elif called in (*CUTS, *ENDS) and isinstance(node.func, ast.Attribute):
            words, signs = node.args, SIGNS if called in CUTS else SIGNS[:-1]
        elif isinstance(node, ast.Compare):
            words = [node.left] if isinstance(node.left, ast.Constant) else []
        texts = [part.value for word in words for part in ast.walk(word) if isinstance(part, ast.Constant)]
        if any(isinstance(text, str) and text in signs for text in texts):
            yield getattr(node, "lineno", 0)


def told_by_names(nodes: list[ast.Call | ast.Compare]) -> Iterator[int]:
    """Lines that ask whether a name begins, ends or goes on with what a resource or a kind of device is called."""
    for node in nodes:
        words: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in (*CUTS, *ENDS):
                words = [elt for given in node.args for elt in (given.elts if isinstance(given, ast.Tuple) else [given])]
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant):
            words = [node.left] if ast.unparse(node.comparators[0]).endswith(("capacity", "device", "name")) else []
        texts = [word.value for word in words if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        if any(text.strip(".*") in (*RESOURCES, *KINDS) for text in texts):
            yield getattr(node, "lineno", 0)


def test_no_decision_is_made_by_a_name() -> None:
    package = Path(hwsim.__file__).parent
    told, cut = list[str](), dict[str, int]()
    for path in sorted(package.rglob("*.py")):
        file, nodes = path.relative_to(package).as_posix(), asking(ast.parse(path.read_text("utf-8")))
        told += [f"{file}:{line}" for line in told_by_names(nodes) if not file.startswith("comparing/recorded/")]
        cut |= {f"{file}:{line}": line for line in cuts(nodes)}
    assert not told, "the kind of a device is in `run.devices`, the kind of a capacity in its record, `hwsim.demand.Capacity`"
    assert [where for where in cut if not where.startswith(tuple(LEGIT))] == [], "a cut of a name needs a reason, see LEGIT"
    assert [place for place in LEGIT if not any(where.startswith(place) for where in cut)] == [], "no such cut any more"


@pytest.mark.parametrize(
    "line", ['"gpu" in usage.capacity', 'name.endswith(".compute")', 'device.rpartition(".")[2].startswith("gpu")',
             'capacity.removesuffix(".cores")', 'name.endswith((".tx", ".rx"))']
)  # fmt: skip
def test_the_rule_finds_such_a_decision(line: str) -> None:
    assert list(told_by_names(asking(ast.parse(line))))


def test_a_machine_without_gpus_is_said(tmp_path: Path) -> None:
    for workload, said in ((TRAIN.replace(", device: GPU*", ""), "trained"), (SERVE, "served")):
        written(tmp_path, {"GPU": "GPU"}, workload)
        (tmp_path / "m.yaml").write_text("hwsim: machine/1\nname: a box\nparts: {gpu: {kind: cpu, use: epyc-7742}}\n")
        with pytest.raises(hwsim.SpecError) as caught:
            hwsim.simulate(str(tmp_path / "m.yaml"), str(tmp_path / "w.yaml"))
        assert f"no device is named: a model is {said} on GPUs, and a box has none" in str(caught.value)
