"""Nothing half added: every kind has its file, its line in the table, an example and documentation."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from hwsim import devices, links
from hwsim.machine import TOPOLOGIES, build, libraries, topologies
from hwsim.machine.libraries.kinds import KINDS as LIBRARIES
from hwsim.machine.libraries.kinds import Library
from hwsim.machine.schema import LINK_KEYS, PART_KEYS, LibraryEntry, LinkEntry, PartEntry, topology_keys
from hwsim.spec import (
    KEPT,
    Mistakes,
    Tree,
    decode,
    find,
    names,
    parameters,
    plan,
    read,
    read_text,
    resolve,
    sources,
    substitute,
    tree_of,
)
from tests.each import each

EXAMPLES = {
    "cpu": "{cores: 4, flop: {fp32: 244 GFLOP/s}, memory: {size: 16 GB, bandwidth: 40 GB/s}}",
    "gpu": "{flop: {fp32: 15.7 TFLOP/s, fp16: 125 TFLOP/s}, memory: {size: 16 GB, bandwidth: 900 GB/s}, launch: 5 us}",
    "memory": "{size: 256 GB, bandwidth: 64 GB/s, latency: 200 ns}",
    "disk": "{read: 3 GB/s, write: 2 GB/s, latency: 120 us, iops: 500 kIOPS, queue: 64}",
    "hdd": "{rpm: 7200, seek: {cylinders: 200000, track: 1 ms, average: 8 ms, full: 16 ms}, outer: 250 MB/s, inner: 120 MB/s}",
    "ssd": "{read: 3 GB/s, write: 2 GB/s, latency: 80 us, write_latency: 20 us, iops: 500 kIOPS, write_iops: 100 kIOPS}",
    "volume": "{iops: 3 kIOPS, bandwidth: 125 MB/s, latency: 1 ms}",
    "raid": "{level: 5, members: 4, disk: {read: 200 MB/s, latency: 10 ms}}",
    "filesystem": "{bandwidth: 100 GB/s, client: 10 GB/s, latency: 1 ms}",
    "nic": "{bandwidth: 25 Gb/s, latency: 1 us}",
    "switch": "{latency: 150 ns, lanes: 96}",
    "line": "{}",
    "ring": "{}",
    "fully-connected": "{}",
    "hybrid-cube-mesh": "{}",
    "star": "{hub: psw}",
    "torus": "{size: [4, 4]}",
    "leaf-spine": "{leaf_ports: 32, oversubscription: 2, switch: {latency: 300 ns}}",
    "dragonfly": "{leaf_ports: 4, routers: 8, global_ports: 4}",
    "tree": "{root: cpu, fan_out: [2, 4]}",
    "fat-tree": "{leaf_ports: 32, rails: 8, pod: 16}",
    "fabric": "{ll: 13 us, ll128: 13 us, simple: 29 us, network: 95 %, tree: 78 %}",
    "mpi": "{curves: {all-reduce: {start: 4 us, bandwidth: 2 GB/s, ranks: 4}}}",
    "nccl": "{start: 30 us, ll: {step: 1 us, rate: 25 %}, ll128: {step: 2 us, rate: 70 %}, simple: {step: 4 us}, channels: 24}",
    "overheads": "{start: 10 us, step: 2 us, efficiency: 80 %}",
    "own": "{links: {nvlink4: {start: 4 us, one: 68 %, sync: 4 us, two: 95 %, largest: 8 MB}}}",
}
PACKAGES: list[tuple[Any, dict[str, Any]]] = [
    (devices, dict(devices.KINDS)),
    (links, dict(links.KINDS)),
    (topologies, dict(TOPOLOGIES)),
    (libraries, dict(LIBRARIES)),
]
KINDS: dict[str, Any] = {name: cls for _, table in PACKAGES for name, cls in table.items()}


@pytest.mark.parametrize(("package", "table"), PACKAGES)
def test_files_and_table_agree(package: Any, table: dict[str, Any]) -> None:
    files = {path.stem for path in Path(package.__file__).parent.glob("*.py")} - {"__init__"}
    modules = [importlib.import_module(f"{package.__name__}.{file}") for file in files]
    classes = [cls for module in modules for cls in vars(module).values() if getattr(cls, "__module__", "") == module.__name__]
    mark = "edges" if package is topologies else "kind"
    kinds = {cls for cls in classes if isinstance(cls, type) and hasattr(cls, mark) and is_dataclass(cls)}
    kinds = {cls for cls in kinds if package is topologies or isinstance(getattr(cls, mark), str)}
    assert kinds - {devices.Sockets} == set(table.values())  # a group is no kind of its own
    assert list(table) == sorted(table) or package is devices
    for name, cls in table.items():
        assert getattr(cls, "kind", name) == name


def test_unions_and_tables_agree() -> None:
    assert all(issubclass(cls, devices.Device) for cls in devices.KINDS.values())
    assert set(get_args(Library)) == set(LIBRARIES.values())
    parts, connections = ({key.name: key for key in plan(cls)}["kind"].bounds.choices for cls in (PartEntry, LinkEntry))
    libraries = {key.name: key for key in plan(LibraryEntry)}["kind"].annotation
    assert set(get_args(libraries)) == set(LIBRARIES)
    assert parts == (*devices.KINDS, "machine")
    assert connections == tuple(links.KINDS)


def test_no_key_means_two_things() -> None:
    for kind in devices.KINDS:
        assert not {field.key for field in plan(KINDS[kind])} & PART_KEYS
    for kind in links.KINDS:
        assert not {field.key for field in plan(KINDS[kind])} & (LINK_KEYS | topology_keys())


def _example(kind: str) -> Tree:
    return tree_of(links.KINDS[kind].examples[0]) if kind in links.KINDS else read_text(EXAMPLES[kind])


@each("kind", KINDS)
def test_every_kind_has_an_example_that_reads(kind: str) -> None:
    mistakes = Mistakes()
    model: Any = decode(_example(kind), KINDS[kind], mistakes)
    mistakes.raise_if_any()
    assert list(getattr(model, "problems", tuple)()) == []


@each("kind", KINDS)
def test_every_key_is_documented_and_every_kind_says_what_it_is(kind: str) -> None:
    assert (KINDS[kind].__doc__ or "").strip()
    for field in plan(KINDS[kind]):
        assert field.doc, f"{kind}.{field.key}"
    assert len(plan(KINDS[kind])) <= len(fields(KINDS[kind]))


@each("name", [name for name in names("part") if name.split("/")[0] in KINDS])
def test_every_part_of_the_library_reads_and_has_a_source_for_every_number(name: str) -> None:
    folder, _, part = name.partition("/")
    tree = read(find(folder, part))
    kind = tree.text("kind") or ""
    assert getattr(KINDS[kind], "role", kind) == folder
    mistakes = Mistakes()
    whole = resolve(tree, mistakes, kind=kind)
    ignore = LINK_KEYS | {"hwsim"} if kind in links.KINDS else PART_KEYS
    model: Any = decode(whole, KINDS[kind], mistakes, ignore=ignore, sourced=True)
    mistakes.raise_if_any()
    assert list(getattr(model, "problems", tuple)()) == []
    assert without_source(whole) == []


@each("name", names("machine"))
def test_every_machine_of_the_library_builds_and_has_a_source_for_every_number(name: str) -> None:
    mistakes = Mistakes()
    tree = read(find("machine", name))
    built = build(tree, mistakes)
    mistakes.raise_if_any()
    assert built is not None
    assert built.warnings == ()
    let = parameters(tree.get("let"), mistakes)
    assert without_source(substitute(tree.without("let"), let, mistakes, KEPT)) == []


def without_source(tree: Tree) -> list[str]:
    """Paths of quantities (what has a unit) that nobody vouches for."""
    known = sources(tree)
    found: list[str] = []

    def walk(node: Tree, path: str) -> None:
        for key, child in node.items():
            if key not in ("source", "ref", "name", "notes", "kind", "use", "count"):
                walk(child, f"{path}.{key}" if path else key)
        if (
            isinstance(node.value, str)
            and re.match(r"[0-9.]+ ?\S*[A-Za-z]", node.value)
            and path not in known
            and not path.endswith(".value")
        ):
            found.append(path)

    walk(tree, "")
    return found
