"""Files that use files, names of the library, and paths of `--set`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hwsim.spec import (
    Mistakes,
    SpecError,
    Warning,
    check_header,
    find,
    library_root,
    merge,
    names,
    read,
    read_text,
    resolve,
    sources,
    tree_of,
    used_file,
)
from hwsim.spec.paths import apply_set
from hwsim.units import parse

PART = """hwsim: part/1
kind: gpu
name: a GPU
source: datasheet
ref: its data sheet
memory: {size: 16 GB, bandwidth: {value: 900 GB/s, source: measured, ref: run 7}}
clock: 1.5 GHz
"""
NODE = """hwsim: machine/1
name: a node
let: {gpus: 4}
parts:
  cpu: {kind: cpu, cores: 8}
  gpu: {kind: gpu, use: gpu-a, count: $gpus}
links:
  - {name: slots, between: [cpu, gpu*], kind: pcie, bandwidth: 16 GB/s}
  - {between: [gpu*, gpu*], kind: nvlink}
"""
CLUSTER = """hwsim: machine/1
name: a cluster
source: an example
let: {nodes: 2}
parts:
  node: {kind: machine, use: node-a, count: $nodes}
  spare: {kind: gpu, use: gpu-a, memory: {size: 32 GB}}
links:
  - {name: fabric, between: [node*, node*], kind: direct, bandwidth: 1 GB/s}
"""
WORKLOAD = """hwsim: workload/1
let: {algorithm: ring, nodes: 9}
program:
  - copy: {name: up, from: cpu, to: gpu, bytes: 1 MB}
  - copy: {from: gpu, to: cpu, bytes: 1 MB}
  - wait: all
train: {parallel: {tp: 1}}
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "machines/node-a.yaml": NODE,
        "machines/cluster.yaml": CLUSTER,
        "machines/parts/gpu/gpu-a.yaml": PART,
        "machines/parts/gpu/gpu-b.yaml": "hwsim: part/1\nkind: gpu\nuse: gpu-a\nclock: 2 GHz\n",
        "machines/parts/pcie/slot.yaml": "hwsim: part/1\nkind: pcie\nlanes: 8\n",
        "machines/parts/gpu/loop-a.yaml": "hwsim: part/1\nuse: loop-b\n",
        "machines/parts/gpu/loop-b.yaml": "hwsim: part/1\nuse: loop-a\n",
        "machines/parts/gpu/bad.yaml": "hwsim: part/1\na: .nan\n",
        "machines/parts/gpu/other.yaml": NODE,
        "workloads/d2l/async-loop.yaml": WORKLOAD,
        "workloads/models/llama.yaml": "hwsim: model/1\nlayers: 2\n",
        "workloads/runtimes/numpy.yaml": "hwsim: part/1\nkind: runtime\ndispatch: 1 us\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr("hwsim.spec.library.library_root", lambda: tmp_path)
    return tmp_path


def resolved(text: str, kind: str = "machine") -> Any:
    mistakes = Mistakes()
    found = resolve(read_text(text, "f.yaml"), mistakes, kind=kind)
    mistakes.raise_if_any()
    return found


def wrong(text: str, kind: str = "machine") -> list[tuple[str, str, str | None]]:
    with pytest.raises(SpecError) as caught:
        resolved(text, kind)
    return [(str(mistake.place), mistake.message, mistake.hint) for mistake in caught.value.mistakes]


def test_the_library_is_found_from_anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert (library_root() / "machines").is_dir()


def test_names_lead_to_files(library: Path) -> None:
    assert find("machine", "node-a") == library / "machines/node-a.yaml"
    assert find("workload", "d2l/async-loop") == library / "workloads/d2l/async-loop.yaml"
    assert find("gpu", "gpu-a") == find("part", "gpu-a") == library / "machines/parts/gpu/gpu-a.yaml"
    assert find("model", "llama").parent.name == "models"
    assert find("machine", "node-a.yaml", library / "machines") == library / "machines/node-a.yaml"
    assert find("workload", "d2l/async-loop", library / "workloads") == library / "workloads/d2l/async-loop.yaml"
    assert names("machine") == ("cluster", "node-a")
    assert names("workload") == ("d2l/async-loop",)
    assert "pcie/slot" in names("part")


@pytest.mark.parametrize(
    ("kind", "name", "message", "hint"),
    [
        ("machine", "node-b", "there is no machine 'node-b' in the library", "did you mean 'node-a'?"),
        ("workload", "async-loop", "there is no workload 'async-loop' in the library", "did you mean 'd2l/async-loop'?"),
        ("cpu", "gpu-a", "there is no cpu 'gpu-a' in the library", "'gpu-a' is a gpu"),
        ("gpu", "node-a", "there is no gpu 'node-a' in the library", "'node-a' is a machine"),
        ("machine", "none.yaml", "there is no file 'none.yaml'", None),
        ("machine", "a/../../x", "there is no machine 'a/../../x' in the library", "known: cluster, node-a"),
        ("machine", "", "expected the name of a machine, got ''", None),
        ("machine", "a\0b", "expected the name of a machine, got 'a b'", None),
        ("machine", "x" * 900, f"there is no machine '{'x' * 60}' in the library", "known: cluster, node-a"),
    ],
)
def test_names_that_lead_nowhere_come_with_the_nearest(
    library: Path, kind: str, name: str, message: str, hint: str | None
) -> None:
    with pytest.raises(SpecError) as caught:
        find(kind, name)
    (mistake,) = caught.value.mistakes
    assert (mistake.message, mistake.hint) == (message, hint)


def test_a_file_beside_is_offered_with_its_ending(library: Path) -> None:
    with pytest.raises(SpecError, match=r"write the file's name with its ending: 'slot\.yaml'"):
        find("machine", "slot", library / "machines/parts/pcie")


def test_keys_beside_use_override_deeply(library: Path) -> None:
    found = resolved("parts: {gpu: {kind: gpu, use: gpu-b, count: 2, memory: {size: 32 GB}}}").plain()["parts"]["gpu"]
    assert found["memory"] == {"size": "32 GB", "bandwidth": {"value": "900 GB/s", "source": "measured", "ref": "run 7"}}
    assert (found["clock"], found["count"], found["name"], found["use"]) == ("2 GHz", 2, "a GPU", "gpu-b")
    assert "hwsim" not in found


def test_a_new_number_does_not_keep_the_old_ones_source() -> None:
    base, over = tree_of({"a": {"value": "1 s", "source": "measured"}}), tree_of({"a": {"value": "2 s"}})
    assert merge(base, over).plain() == {"a": {"value": "2 s"}}
    assert merge(base, tree_of({"a": "2 s"})).plain() == {"a": "2 s"}
    assert merge(tree_of({"a": [1, 2]}), tree_of({"a": [3]})).plain() == {"a": [3]}


def test_links_of_a_used_machine_are_overridden_by_name() -> None:
    links = [{"name": "a", "x": 1}, {"name": "b", "x": 2}]
    assert merge(tree_of(links), tree_of({"b": {"x": 3}})).plain() == [{"name": "a", "x": 1}, {"name": "b", "x": 3}]
    assert merge(tree_of(links), tree_of({"c": {}})).plain() == {"c": {}}


def test_a_machine_in_a_machine_has_parameters_of_its_own(library: Path) -> None:
    node = resolved(CLUSTER).plain()["parts"]["node"]
    assert node["count"] == 2
    assert node["parts"]["gpu"]["count"] == 4
    assert node["parts"]["gpu"]["clock"] == "1.5 GHz"
    node = resolved(CLUSTER.replace("count: $nodes}", "count: $nodes, let: {gpus: $nodes * 8}}")).plain()["parts"]["node"]
    assert node["parts"]["gpu"]["count"] == 16


def test_a_machine_may_be_another_with_changes(library: Path) -> None:
    found = resolved("hwsim: machine/1\nuse: node-a\nlet: {gpus: 8}\nparts: {gpu: {use: gpu-b}}").plain()
    assert (found["parts"]["gpu"]["count"], found["parts"]["gpu"]["clock"], found["hwsim"]) == (8, "2 GHz", "machine/1")


def test_the_key_tells_the_kind_where_no_kind_is_written(library: Path) -> None:
    assert resolved("runtime: {use: numpy, queue: 3}", "workload").plain()["runtime"] == {
        "kind": "runtime",
        "dispatch": "1 us",
        "queue": 3,
        "use": "numpy",
    }


def test_files_are_relative_to_the_one_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/inner.yaml").write_text("hwsim: part/1\nuse: ./deep.yaml\nb: 2\n")
    (tmp_path / "sub/deep.yaml").write_text("hwsim: part/1\na: 1\n")
    (tmp_path / "outer.yaml").write_text("hwsim: machine/1\nparts: {gpu: {use: sub/inner.yaml}}\n")
    mistakes = Mistakes()
    found = resolve(read(tmp_path / "outer.yaml"), mistakes)
    mistakes.raise_if_any()
    assert found.plain()["parts"]["gpu"] == {"a": 1, "b": 2, "use": "sub/inner.yaml"}


def test_mistakes_in_use_have_places(library: Path) -> None:
    assert wrong("parts:\n  gpu: {kind: gpu, use: gpu-c}\n") == [
        ("f.yaml:2:25", "there is no gpu 'gpu-c' in the library", "did you mean 'gpu-a' or 'gpu-b'?")
    ]
    assert wrong("parts: {gpu: {use: 8}}")[0][1] == "`use`: expected a name, got 8"
    assert wrong("parts: {gpu: {use: loop-a}}")[0][1] == "`use` forms a cycle of files: loop-a -> loop-b -> loop-a"
    assert wrong("parts: {gpu: {use: bad}}")[0][:2] == (
        str(library / "machines/parts/gpu/bad.yaml") + ":2:4",
        ".nan is not a finite number",
    )
    assert wrong("parts: {gpu: {use: other}}")[0][1] == "expected a file of format 'part/1', got 'machine/1'"
    assert wrong("let: {n: 1}\nparts: {gpu: {count: $m}}")[0][:2] == ("f.yaml:2:22", "unknown parameter '$m'")


def test_a_machine_cannot_hold_itself(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("hwsim: machine/1\nparts: {m: {kind: machine, use: ./m.yaml}}\n")
    mistakes = Mistakes()
    resolve(read(tmp_path / "m.yaml"), mistakes)
    assert [mistake.message for mistake in mistakes] == ["`use` forms a cycle of files: m -> m"]


def test_a_chain_of_files_cannot_nest_beyond_the_limit(tmp_path: Path) -> None:
    deep = "{a: " * 90
    for index in range(40):
        (tmp_path / f"f{index}.yaml").write_text(f"hwsim: part/1\nx: {deep}{{use: ./f{index + 1}.yaml}}{'}' * 90}\n")
    mistakes = Mistakes()
    resolve(read(tmp_path / "f0.yaml"), mistakes)
    assert [mistake.message for mistake in mistakes] == ["nested more than 100 levels deep, including used files"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("hwsim: machin/1", "'machin/1' is not a known format", "did you mean 'machine/1'?"),
        ("hwsim: workload/1", "expected a file of format 'machine/1', got 'workload/1'", None),
        ("name: x", "'hwsim' is missing", "the first line is the format: 'hwsim: machine/1'"),
        ("[1]", "expected a mapping, got a list", "its first line is 'hwsim: machine/1'"),
        ("hwsim: 1", "1 is not a known format", "write machine/1"),
    ],
)
def test_a_file_says_what_it_is(text: str, message: str, hint: str | None) -> None:
    mistakes = Mistakes()
    assert not check_header(read_text(text), "machine/1", mistakes)
    assert [(mistake.message, mistake.hint) for mistake in mistakes] == [(message, hint)]
    assert check_header(read_text("hwsim: machine/1"), "machine/1", mistakes)


def test_numbers_keep_the_source_of_their_file(library: Path) -> None:
    found = {path: str(origin) for path, origin in sources(resolved(CLUSTER)).items()}
    assert found["parts.spare.memory.size"] == "an example"
    assert found["parts.spare.memory.bandwidth"] == "measured, run 7"
    assert found["parts.spare.clock"] == "datasheet, its data sheet"
    assert found["links.fabric.bandwidth"] == "an example"
    assert found["parts.node.parts.gpu.clock"] == "datasheet, its data sheet"
    assert "parts.node.parts.cpu.cores" not in found


# ---- --set ----


def changed(path: str, value: Any, machine: str = CLUSTER) -> tuple[Any, Any, Warning | None]:
    m, w, note = apply_set(read_text(machine, "m.yaml"), read_text(WORKLOAD, "w.yaml"), path, value)
    mistakes = Mistakes()
    m = resolve(m, mistakes)
    mistakes.raise_if_any()
    return m.plain(), w.plain(), note


def test_each_kind_of_path_changes_its_value(library: Path) -> None:
    assert changed("algorithm", "ps-cpu")[1]["let"]["algorithm"] == "ps-cpu"
    assert changed("machine.spare.count", "8")[0]["parts"]["spare"]["count"] == 8
    assert changed("machine.spare.memory.size", "1 GB")[0]["parts"]["spare"]["memory"]["size"] == "1 GB"
    assert changed("machine.name", "x")[0]["name"] == "x"
    assert changed("machine.let.nodes", "5")[0]["parts"]["node"]["count"] == 5
    assert changed("machine.links.fabric.bandwidth", "2 GB/s")[0]["links"][0]["bandwidth"] == "2 GB/s"
    assert changed("machine.links.direct.bandwidth", "2 GB/s")[0]["links"][0]["bandwidth"] == "2 GB/s"
    assert changed("workload.train.parallel.tp", "8")[1]["train"]["parallel"]["tp"] == 8
    assert changed("workload.train.schedule", "1f1b")[1]["train"]["schedule"] == "1f1b"
    assert changed("workload.program.0.copy.bytes", "2 MB")[1]["program"][0]["copy"]["bytes"] == "2 MB"
    assert changed("workload.program.up.copy.bytes", "2 MB")[1]["program"][0]["copy"]["bytes"] == "2 MB"
    assert changed("machine.spare.order", "[a, b]")[0]["parts"]["spare"]["order"] == ["a", "b"]


def test_parts_inside_a_used_machine_are_reached(library: Path) -> None:
    node = changed("machine.node.gpu.use", "gpu-b")[0]["parts"]["node"]
    assert (node["parts"]["gpu"]["clock"], node["parts"]["gpu"]["count"], node["count"]) == ("2 GHz", 4, 2)
    assert changed("machine.node.count", "7")[0]["parts"]["node"]["count"] == 7
    assert changed("machine.node.let.gpus", "6")[0]["parts"]["node"]["parts"]["gpu"]["count"] == 6
    assert changed("machine.node.links.slots.bandwidth", "1 GB/s")[0]["parts"]["node"]["links"][0]["bandwidth"] == "1 GB/s"
    assert changed("machine.gpu.count", "3", "hwsim: machine/1\nuse: node-a\n")[0]["parts"]["gpu"]["count"] == 3


def test_let_goes_to_both_files_and_says_so(library: Path) -> None:
    machine, workload, note = changed("let.nodes", 3)
    assert (machine["parts"]["node"]["count"], workload["let"]["nodes"]) == (3, 3)
    assert note.text == "'let.nodes' is set in both the machine and the workload"
    assert changed("let.algorithm", "x")[2] is None


def test_values_may_come_from_python(library: Path) -> None:
    assert changed("machine.spare.clock", parse("2 GHz"))[0]["parts"]["spare"]["clock"] == parse("2 GHz")
    assert changed("machine.spare.count", 2)[0]["parts"]["spare"]["count"] == 2


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("algorithn", "the workload has no parameter 'algorithn'", "did you mean 'algorithm'?"),
        ("let.node", "neither file has a parameter 'node'", "did you mean 'nodes'?"),
        ("machine.spere.count", "the machine has no part 'spere'", "did you mean 'spare'?"),
        ("machine.node.gpv.use", "the machine has no part 'gpv'", "did you mean 'gpu'?"),
        ("machine.spare", "'spare' is a part: expected one of its keys", "such as machine.spare.count"),
        ("machine.let.n", "the machine has no parameter 'n'", "known: nodes"),
        ("machine.links.fabrik.use", "the machine has no link 'fabrik'", "did you mean 'fabric'?"),
        ("machine.links.fabric", "'fabric' is a link: expected one of its keys", "such as machine.links.fabric.use"),
        ("spare.count", "the path 'spare.count' does not exist", "did you mean 'machine.spare.count' or 'workload.spare.count'?"),
        ("workload.trane.parallel.tp", "there is no key 'trane'", "did you mean 'train'?"),
        ("workload.program.9.copy", "there is no element 9: the list has 3 elements, counted from 0", None),
        ("workload.program.copy.bytes", "several elements match 'copy': 0, 1", None),
        ("workload.program.read.bytes", "no element matches 'read'", "known: all, copy, up, wait|known: copy, up, wait"),
        ("workload.train.parallel.tp.x", "1 has no key 'x'", None),
        ("machine..count", "'machine..count' is not a path", "separate keys by dots: machine.gpu.count"),
        ("", "'' is not a path", "separate keys by dots: machine.gpu.count"),
    ],
)
def test_paths_that_lead_nowhere_are_mistakes(library: Path, path: str, message: str, hint: str | None) -> None:
    with pytest.raises(SpecError) as caught:
        changed(path, "8")
    (mistake,) = caught.value.mistakes
    assert mistake.message == message
    assert mistake.hint == hint or (mistake.hint or "-") in (hint or "").split("|")
    assert str(mistake.place) == "--set:1:1"


def test_a_parameter_of_the_machine_is_pointed_to(library: Path) -> None:
    with pytest.raises(SpecError, match=r"write 'let\.size'"):
        changed("size", "8", "hwsim: machine/1\nlet: {size: 1}\n")


@pytest.mark.parametrize("value", ["", "[", "a: b: c", "a\nb", ".nan", "!x 1"])
def test_values_that_are_none_are_mistakes(library: Path, value: str) -> None:
    with pytest.raises(SpecError):
        changed("algorithm", value)


def test_used_gives_the_file_as_it_is_written(library: Path) -> None:
    found = used_file(read_text("{use: node-a}"), "machine")
    assert found.plain()["let"] == {"gpus": 4}
    assert used_file(read_text("{a: 1}"), "machine") is None
