"""Chakra execution traces (`.et` and its JSON forms) as a recording; a file is a rank.

Times are whole microseconds, and many files have none: then each op starts as soon as what it waits for has ended and its lane is
free. hwsim's own files keep femtoseconds in attributes of their own (`hwsim.start_fs`, `hwsim.duration_fs`), which others ignore.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Final

import numpy as np

from hwsim.importers import chakra_json, chakra_nodes
from hwsim.importers.chakra_facts import COMMUNICATION, MEMORY, Describing
from hwsim.importers.chakra_nodes import Damaged, Kind, Node, Trace, Value, attributes_of, number_of
from hwsim.importers.recording import HOST, Edges, Lane, Left, Rank, Recording, Slices, What
from hwsim.spec import Place, SpecError

MICRO: Final = 10**9  # fs
MOST_BYTES: Final = 4 << 30  # of a file, unpacked
_RANK: Final = re.compile(r"(\d+)$")
_CALLS: Final = ("cuda", "hip", "cu")


def read(files: Sequence[Path], report: Callable[[int, int], None] | None = None) -> Recording:
    """The recording of some files, one for each rank; one of them may name the ranks of the process groups (comm_group.json).

    Raises:
        SpecError: a file that is cut off, or no such trace.
    """
    contents = [(file, _content(file)) for file in files]
    groups: dict[str, tuple[int, ...]] = {}
    traces: list[tuple[Path, Trace]] = []
    size, done = sum(len(data) for _, data in contents), 0
    for file, data in contents:
        named = chakra_json.groups(data) if data[:1] == b"{" else None
        if named is not None:
            groups |= named
        else:
            traces.append((file, _trace(file, data)))
        done += len(data)
        if report is not None:
            report(done, size)
    if not traces:
        raise _wrong(files[0], "this names process groups; where are the traces of the ranks?")
    numbers = _numbers(traces)
    world = max(
        len(traces) if sorted(numbers) == list(range(len(traces))) and len(traces) > 1 else 0, _own(traces[0][1], "world")
    )
    left: list[Left] = []
    ranks = []
    for number, (file, trace) in zip(numbers, traces, strict=True):
        try:
            ranks.append(_Reading(file, trace, number, world, groups).rank(left))
        except OverflowError:
            raise _wrong(file, "a number that is too large", "times from its beginning on, up to 2.56 h") from None
    return Recording("chakra", tuple(sorted(ranks, key=lambda rank: rank.number)), _summed(left))


def _wrong(file: Path, message: str, hint: str | None = None) -> SpecError:
    return SpecError.of(Place(str(file), 0, 0), message, hint)


def _content(file: Path) -> bytes:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            data: bytes = opened.read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _wrong(file, f"damaged: {error}") from None
    if len(data) > MOST_BYTES:
        raise _wrong(file, f"more than {MOST_BYTES:,} bytes")
    return data


def _trace(file: Path, data: bytes) -> Trace:
    text = data.lstrip()[:1] in (b"{", b"[") or ".json" in file.suffixes
    try:
        return chakra_json.parse(data) if text else chakra_nodes.parse(data)
    except Damaged as error:
        hint = None if text else "Chakra traces are .et files of protobuf messages, or their JSON"
        raise _wrong(file, f"byte {error.byte}: {error}", hint) from None


def _own(trace: Trace, name: str) -> int:
    """A number of a file's own attributes, `hwsim.rank` say; -1 if it has none."""
    return number_of((attributes_of(trace.attributes).get(f"hwsim.{name}"),), -1)


def _numbers(traces: Sequence[tuple[Path, Trace]]) -> list[int]:
    """Numbers of the ranks: what the file says, else the number at the end of its name, else its place."""
    numbers = []
    for place, (file, trace) in enumerate(traces):
        digits = _RANK.search(file.name.removesuffix(".gz").rpartition(".")[0])
        by_file = _own(trace, "rank")
        numbers.append(by_file if by_file >= 0 else int(digits[1][-9:]) if digits else place)
    if len(set(numbers)) < len(numbers):
        if any(_own(trace, "rank") >= 0 for _, trace in traces):
            again = next(file for at, (file, _) in enumerate(traces) if numbers[at] in numbers[:at])
            raise _wrong(again, "another file is of the same rank")
        numbers = list(range(len(traces)))
    return numbers


def _summed(left: Sequence[Left]) -> tuple[Left, ...]:
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for node_of in left:
        count, duration = sums.get((node_of.name, node_of.why), (0, 0))
        sums[node_of.name, node_of.why] = (count + node_of.count, duration + node_of.duration)
    return tuple(Left(name, count, duration, why) for (name, why), (count, duration) in sums.items())


class _Reading:
    """A file on its way to a rank."""

    def __init__(self, file: Path, trace: Trace, number: int, world: int, groups: Mapping[str, tuple[int, ...]]) -> None:
        self.file, self.number, self.world = file, number, world
        self.attributes = attributes_of(trace.attributes)
        self.nodes = trace.nodes
        self.values = [attributes_of(node.attributes) for node in trace.nodes]
        self.called = any("rf_id" in values for values in self.values)  # of PyTorch: a control dependency is the caller
        self.lanes: dict[Lane, int] = {}
        self.facts = Describing(groups, world)

    def rank(self, left: list[Left]) -> Rank:
        """The rank, and what was left out."""
        kept = [at for at, node in enumerate(self.nodes) if node.kind not in (Kind.METADATA, Kind.INVALID)]
        waits = self._waits(kept, left)
        kinds = [self._what(self.nodes[at], self.values[at]) for at in kept]
        lane = [self._lane(self.nodes[at], self.values[at], kind) for at, kind in zip(kept, kinds, strict=True)]
        length = [number_of((self.values[at].get("hwsim.duration_fs"),), self.nodes[at].duration * MICRO) for at in kept]
        if min(length, default=0) < 0:
            raise _wrong(self.file, "a duration below zero")
        facts = [self.facts.number(self.nodes[at], self.values[at], kind) for at, kind in zip(kept, kinds, strict=True)]
        if len(self.nodes) > len(kept):
            left.append(
                Left("metadata", len(self.nodes) - len(kept), 0, "nodes of no work; what waits for them waits for theirs")
            )
        bare = sum(not length[at] and _asks(self.nodes[node_of]) for at, node_of in enumerate(kept))  # integers
        if bare:
            left.append(Left("no duration", bare, 0, "the file leaves their time to a simulator: give a machine"))
        if any(node.start or "hwsim.start_fs" in values for node, values in zip(self.nodes, self.values, strict=True)):
            start = [number_of((self.values[at].get("hwsim.start_fs"),), self.nodes[at].start * MICRO) for at in kept]
            waits = self._in_time(waits, start, length, left)
        else:
            start = self._soonest(waits, length, lane)
        order = sorted(range(len(kept)), key=lambda at: (start[at], -length[at], at))
        place = {at: number for number, at in enumerate(order)}
        names: dict[str, int] = {}
        called = [names.setdefault(self.nodes[kept[at]].name, len(names)) for at in order]
        pairs = [(place[before], place[then]) for then, several in enumerate(waits) for before in several]
        edges = np.array(sorted(pairs), np.int32).reshape(-1, 2)
        return Rank(
            number=self.number,
            world=self.world,
            file=str(self.file),
            host=str(self.attributes.get("hwsim.host", "")),
            devices=self._devices(),
            slices=Slices(
                what=np.array([kinds[at] for at in order], np.uint8),
                name=np.array(called, np.int32),
                lane=np.array([lane[at] for at in order], np.int32),
                start=np.array([start[at] for at in order], np.int64),  # fits
                duration=np.array([length[at] for at in order], np.int64),  # fits
                link=np.array([number_of((self.values[kept[at]].get("hwsim.link"),), -1) for at in order], np.int64),
                facts=np.array([facts[at] for at in order], np.int32),
            ),
            names=tuple(names),
            lanes=tuple(self.lanes),
            facts=tuple(self.facts.numbers),
            stated=Edges(np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])),
        )

    def _devices(self) -> tuple[tuple[int, str], ...]:
        numbers = sorted({lane.device for lane in self.lanes if lane.device != HOST})
        return tuple((number, str(self.attributes.get(f"hwsim.gpu.{number}", ""))) for number in numbers)

    def _waits(self, kept: Sequence[int], left: list[Left]) -> list[list[int]]:
        """Places among those kept that each waits for; what waits for a node that is not kept waits for what that waits for."""
        place = {at: number for number, at in enumerate(kept)}
        by_number = {node.number: at for at, node in enumerate(self.nodes)}
        if len(by_number) < len(self.nodes):
            raise _wrong(self.file, f"{len(self.nodes) - len(by_number)} nodes have the number of another one")
        unknown = callers = 0
        waits = []
        for at in kept:
            digits: dict[int, None] = {}
            ahead, seen = [at], {at}
            while ahead:
                node = self.nodes[ahead.pop()]
                if self.called:
                    callers += len(node.controls)
                for number in node.data if self.called else (*node.data, *node.controls):
                    before = by_number.get(number, -1)
                    if before < 0:
                        unknown += 1
                    elif before in place:
                        digits[place[before]] = None
                    elif before not in seen:
                        seen.add(before)
                        ahead.append(before)
            waits.append(list(digits))
        if unknown:
            left.append(Left("dependencies", unknown, 0, "on nodes that the file does not have"))
        if callers:
            left.append(Left("callers", callers, 0, "PyTorch's control dependencies name who called, not what to wait for"))
        return waits

    @staticmethod
    def _in_time(
        waits: Sequence[Sequence[int]], start: Sequence[int], length: Sequence[int], left: list[Left]
    ) -> list[list[int]]:
        """Without dependencies that the recorded times contradict."""
        kept = [[at for at in several if start[at] + length[at] <= start[then]] for then, several in enumerate(waits)]
        wrong = sum(map(len, waits)) - sum(map(len, kept))  # integers
        if wrong:
            left.append(Left("dependencies", wrong, 0, "on what ended after its successor had started"))
        return kept

    def _what(self, node: Node, values: Mapping[str, Value]) -> What:
        if "hwsim.what" in values:
            return What(number_of((values["hwsim.what"],)) % len(What))
        if values.get("is_cpu_op"):
            return What.CALL if node.name.startswith(_CALLS) else What.OP
        if node.kind in MEMORY or node.name.startswith("Memcpy"):
            return What.COPY
        return What.SET if node.name.startswith("Memset") else What.KERNEL

    def _lane(self, node: Node, values: Mapping[str, Value], kinds: What) -> int:
        on_host = kinds in (What.OP, What.CALL, What.PYTHON, What.MARK)
        if on_host:
            number = number_of((values.get("tid"),))
            lane = Lane(str(values.get("hwsim.lane", f"thread {number}")), HOST, number)
        else:
            # where no stream is named: computing and exchanging at a time, as ASTRA-sim does
            exchanging = int(node.kind in COMMUNICATION)
            number = number_of((values.get("stream"), values.get("tid")), exchanging)
            named = "stream" in values or "tid" in values
            called = f"stream {number}" if named else ("compute", "network")[exchanging]
            lane = Lane(str(values.get("hwsim.lane", called)), number_of((values.get("hwsim.device"),)), number)
        return self.lanes.setdefault(lane, len(self.lanes))

    def _soonest(self, waits: Sequence[Sequence[int]], length: Sequence[int], lane: Sequence[int]) -> list[int]:
        """Start of each: after what it waits for, when its lane is free; who is ready first goes first."""
        missing = [len(several) for several in waits]
        after: list[list[int]] = [[] for _ in waits]
        for then, several in enumerate(waits):
            for before in several:
                after[before].append(then)
        ready = [0] * len(waits)
        start = [-1] * len(waits)
        free = [0] * len(self.lanes)
        queue = [(0, at) for at, count in enumerate(missing) if not count]
        heapify(queue)
        while queue:
            time, at = heappop(queue)
            start[at] = max(time, free[lane[at]])
            end = free[lane[at]] = start[at] + length[at]
            for then in after[at]:
                ready[then] = max(ready[then], end)
                missing[then] -= 1
                if not missing[then]:
                    heappush(queue, (ready[then], then))
        if -1 in start:
            stuck = self.nodes[start.index(-1)].name
            raise _wrong(self.file, f"{start.count(-1)} nodes wait for one another in a circle, '{stuck}' among them")
        return start


def _asks(node: Node) -> bool:
    """Whether a node without a duration is one whose time is to be found."""
    return node.kind in COMMUNICATION or node.kind in MEMORY or any(node_of.name == "num_ops" for node_of in node.attributes)
