"""Execution traces of PyTorch's host (`ExecutionTraceObserver`): ops with shapes and what they wait for, and no times.

Schemas 1.0.x have inputs as flat lists and attributes as keys; 1.1.x have both as lists of their own. A tensor is named by
its storage: an op waits for the op that wrote the storage last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.importers.collectives import collective_name, dtype_name, of_tensors
from hwsim.importers.columns import Allocations, Columns, LeftOut
from hwsim.importers.kineto.facts import shape, shapes
from hwsim.importers.ranks import Process, joined, number_of
from hwsim.importers.recording import HOST, Collective, Facts, Lane, Rank, Recording, What
from hwsim.importers.text import Entries, Report, damaged, read_each
from hwsim.records import dataclass
from hwsim.spec import SpecError

HINT: Final = "a profile with 'traceEvents' is Kineto's: `hwsim import kineto`; Chakra's JSON: `hwsim import chakra`"
ROOTS: Final = ("[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_trace|thread]")
GROUPS: Final = "## process_group:init ##"
ORDER: Final = "the file has no times: starts and lengths are the order and the nesting of the ops"
_USER: Final = 7  # scope of record_function
_TENSOR: Final = re.compile(r"Tensor\(([^)]*)\)")
_DEVICE: Final = 5  # place of the device in a tensor
Side = tuple[list[Any], list[Any], list[str], list[Any]]  # values, shapes, types and strides of inputs or outputs
_WRONG: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Node:
    """An op of the file: its parent, thread, facts, and the storages that it reads and writes."""

    id: int
    parent: int
    name: str
    what: What
    tid: int
    facts: Facts
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def read(files: Sequence[Path], report: Report | None = None) -> Recording:
    """Read the ranks of one run.

    Raises:
        SpecError: a file that is cut, damaged or of another format.
        OSError: a file that cannot be opened.
    """
    recording = joined("host", read_each(files, _read_file, report), clocked=False)
    return replace(recording, timed=False, zero=0.0, notes=(*recording.notes, ORDER))


def _read_file(file: Path, report: Report | None) -> Process:
    entries = Entries(file, "nodes", "nodes", HINT, report=report)
    nodes: dict[int, Node] = {}
    left, groups = LeftOut(), dict[str, tuple[int, ...]]()
    entry: dict[str, Any] = {}
    try:
        for entry in entries:
            if entry["name"] in ROOTS:
                left.add("process and thread", "roots of the tree of ops")
                continue
            node = _node(entry)
            if node.id in nodes:
                raise ValueError(f"id {node.id} is given twice")
            if node.name == GROUPS:
                groups |= _groups(entry)
            nodes[node.id] = node
    except SpecError:
        raise
    except _WRONG as error:
        why = str(error)[:80] if type(error) is ValueError else f"a value is missing or of another kind ({ascii(error)[:60]})"
        raise entries.wrong(f"node {ascii(entry.get('name', ''))[:60]}: {why}") from None
    columns, edges = _in_order(nodes, groups)
    pid = entries.rest.get("pid")
    pids = frozenset({pid}) if isinstance(pid, int) else frozenset()
    return Process(file, number_of(file), 0, "", (), columns, Allocations(), left, 0, pids, edges)


def _in_order(nodes: dict[int, Node], groups: dict[str, tuple[int, ...]]) -> tuple[Columns, list[tuple[int, int]]]:
    """Ops as a tree: each begins one tick after its parent or after the op before it; and who waits for whose tensors."""
    columns = Columns()
    order = sorted(nodes)
    start = {number: at for at, number in enumerate(order)}
    end = {number: at + 1 for at, number in enumerate(order)}
    parents = set()
    for number in reversed(order):  # a child's number is larger than its parent's
        parent = nodes[number].parent
        if parent in start and parent < number:
            end[parent] = max(end[parent], end[number])
            parents.add(parent)
    writer: dict[int, int] = {}
    edges = []
    for at, number in enumerate(order):
        node = nodes[number]
        facts = node.facts
        if facts.collective is not None and facts.collective.group in groups:
            ranks = groups[facts.collective.group]
            facts = replace(facts, collective=replace(facts.collective, ranks=ranks, size=len(ranks)))
        fact = columns.fact(facts) if facts != _NONE else -1
        lane = columns.lane_of(node.tid, Lane(f"thread {node.tid}", HOST, node.tid))
        columns.add(node.what, node.name, lane, start[number], end[number] - start[number], -1, fact)
        if number not in parents:  # what an op does is in the ops that it calls
            edges += sorted({(writer[each], at) for each in node.reads if each in writer})
            writer |= dict.fromkeys((*node.writes, *(node.reads if node.name.startswith("nccl:") else ())), at)
    return columns, edges


_NONE: Final = Facts()


def _node(entry: dict[str, Any]) -> Node:
    attributes = {each["name"]: each["value"] for each in entry.get("attrs", ()) if isinstance(each, dict)}
    values = attributes or entry  # 1.0.x has them as keys
    inputs, outputs = (_values(entry, side) for side in ("input", "output"))
    number, parent = entry["id"], entry.get("ctrl_deps", entry.get("parent", 0))
    if type(number) is not int or type(parent) is not int:
        raise ValueError("an id is no number")
    name = entry["name"]
    kind_of_op = What.MARK if values.get("scope") == _USER else What.OP
    facts = Facts(
        tuple(shape(each) if _holds_tensors(kind) else () for each, kind in zip(inputs[1], inputs[2], strict=False)),
        tuple(_dtype(kind) for kind in inputs[2]),
        shapes(inputs[3]) or (),
        tuple("" if _holds_tensors(kind) else _text(value) for value, kind in zip(inputs[0], inputs[2], strict=False)),
        collective=_collective(name, attributes) or of_tensors(name, inputs[1], inputs[2]),
        attributes=(("kernel_file", str(values["kernel_file"])),) if values.get("kernel_file") else (),
    )
    facts = _with_devices(facts, name, inputs, outputs)
    facts = replace(facts, shapes=None) if not facts.shapes else facts
    tid = values.get("tid", 0)
    thread = tid if isinstance(tid, int) else 0
    return Node(number, parent, name, kind_of_op, thread, facts, _storages(inputs), _storages(outputs))


def _with_devices(facts: Facts, name: str, inputs: Side, outputs: Side) -> Facts:
    """Facts with the device of an op's tensors, a GPU if there is one; of a copy between two devices its bytes and direction."""
    tensors = _tensors(inputs)
    devices = [str(each[5]) for each in (*tensors, *_tensors(outputs)) if len(each) > _DEVICE]
    on_gpu = next((device for device in devices if device != "cpu"), "")
    if not on_gpu:
        return facts
    facts = replace(facts, attributes=(*facts.attributes, ("device", on_gpu)))
    if name == "aten::copy_" and len(tensors) > 1 and (devices[0] == "cpu") != (devices[1] == "cpu"):
        elements, width = tensors[1][3:5]
        return replace(facts, bytes=int(elements) * int(width), kind="DtoH" if devices[0] == "cpu" else "HtoD")
    return facts


def _values(entry: dict[str, Any], side: str) -> Side:
    """Values, shapes, types and strides of the inputs or outputs of a node."""
    whole = entry.get(f"{side}s", ())
    if isinstance(whole, dict):
        return whole.get("values", []), whole.get("shapes", []), whole.get("types", []), whole.get("strides", [])
    return list(whole), entry.get(f"{side}_shapes", []), entry.get(f"{side}_types", []), entry.get(f"{side}_strides", [])


def _holds_tensors(kind: str) -> bool:
    return "Tensor(" in kind


def _dtype(kind: str) -> str:
    """The type of elements; of a list of tensors, the type of the first."""
    found = _TENSOR.search(kind)
    return found[1] if found else "" if kind == "None" else kind


def _text(value: Any) -> str:
    return "" if value == "<None>" else value if isinstance(value, str) else json.dumps(value)


def _tensors(side: Side) -> list[list[Any]]:
    """Tensors of a side, also those in lists: [tensor, storage, offset, elements, bytes of an element, device]."""
    tensors: list[list[Any]] = []
    for value, kind in zip(side[0], side[2], strict=False):
        if _holds_tensors(kind):
            several = value if value and isinstance(value[0], list) else [value]
            tensors += [each for each in several if isinstance(each, list)]
    return tensors


def _storages(side: Side) -> tuple[int, ...]:
    """Ids of the storages of tensors."""
    return tuple(each[1] for each in _tensors(side) if len(each) > 1 and isinstance(each[1], int))


def _collective(name: str, attributes: dict[str, Any]) -> Collective | None:
    kind = collective_name(str(attributes.get("collective_name", ""))) if name == "record_param_comms" else ""
    if not kind:
        return None
    return Collective(
        kind, int(attributes.get("in_msg_nelems", 0)), int(attributes.get("out_msg_nelems", 0)),
        dtype_name(str(attributes.get("dtype", ""))), (), int(attributes.get("pg_size", 0)), str(attributes.get("pg_name", "")),
    )  # fmt: skip


def _groups(entry: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Ranks of the process groups that a node says as JSON in a text."""
    groups = {}
    for value in _values(entry, "input")[0]:
        for group in json.loads(value) if isinstance(value, str) and value.startswith("[") else ():
            groups[str(group["pg_name"])] = tuple(int(rank) for rank in group.get("ranks", ()))
    return groups


def with_shapes(recording: Recording, host: Recording) -> Recording:
    """A recording of a profile whose ops have the facts of a host trace of the same run.

    Ops are joined by thread and order, and only if all names agree. Old profiles have whole microseconds: of ops that begin
    in the same one the profile does not know the order, and takes it from the host trace.

    Raises:
        SpecError: the first op that differs; the two are of different runs.
    """
    traces = {rank.number: rank for rank in host.ranks}
    ranks = []
    for rank in recording.ranks:
        if rank.number not in traces:
            raise damaged(rank.file, f"there is no host trace of rank {rank.number}", "give one for each rank")
        trace = traces[rank.number]
        mine, theirs = (_threads(each) for each in (rank, trace))
        facts, table = rank.slices.facts.copy(), list(rank.facts)
        for number, in_time in enumerate(mine):
            match = theirs[number] if number < len(theirs) else []
            their_names = [trace.names[trace.slices.name[at]] for at in match]
            rows = _as_named(rank, in_time, their_names)
            names = [rank.names[rank.slices.name[at]] for at in rows]
            if names != their_names:
                pairs = zip_longest(names, their_names, fillvalue="")
                at, differing = next((at, pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
                wanted, present = (f"'{name}'" if name else "nothing" for name in differing)
                raise damaged(
                    trace.file, f"op {at} of thread {number + 1} is {wanted} in {rank.file}, and {present} here",
                    "a host trace completes the profile of the same run only",
                )  # fmt: skip
            for at, their in zip(rows, match, strict=True):
                their_facts = trace.slices.facts[their]
                if their_facts >= 0 and (facts[at] < 0 or table[facts[at]].shapes is None):
                    mine_facts = table[facts[at]] if facts[at] >= 0 else _NONE
                    table.append(
                        replace(trace.facts[their_facts], collective=mine_facts.collective or trace.facts[their_facts].collective)
                    )
                    facts[at] = len(table) - 1
        slices = replace(rank.slices, facts=facts.astype(np.int32))
        ranks.append(replace(rank, slices=slices, facts=tuple(table)))
    return replace(recording, ranks=tuple(ranks))


def _as_named(rank: Rank, rows: list[int], wanted: list[str]) -> list[int]:
    """Indices of the ops of a thread, those that begin at the same time in the order of the wanted names."""
    ordered: list[int] = []
    for _, group in groupby(rows, key=lambda at: int(rank.slices.start[at])):
        together = list(group)
        names = wanted[len(ordered) : len(ordered) + len(together)]
        if len(together) > 1 and sorted(names) == sorted(rank.names[rank.slices.name[at]] for at in together):
            place = sorted(range(len(names)), key=lambda n: names[n])  # the sort is stable: equal names keep their order
            by_name = sorted(together, key=lambda at: rank.names[rank.slices.name[at]])
            together = [at for _, at in sorted(zip(place, by_name, strict=True))]
        ordered += together
    return ordered


def _threads(rank: Any) -> list[list[int]]:
    """Indices of the ops of each thread, the thread with the most first."""
    threads: dict[int, list[int]] = {}
    for at in np.flatnonzero(rank.slices.what == What.OP).tolist():
        threads.setdefault(int(rank.slices.lane[at]), []).append(at)
    return sorted(threads.values(), key=lambda rows: (-len(rows), rows[0]))
