"""Reader of Chakra execution traces (`.et`), one file per rank.

Times are whole microseconds of any clock. Many files have no start times: each op then starts when its dependencies have ended
and its lane is free. hwsim's own files have femtoseconds in additional attributes (`hwsim.start_fs`, `hwsim.duration_fs`), which
other tools ignore.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, Final

from hwsim.importers.chakra_facts import COMMUNICATION, MEMORY, FactTable
from hwsim.importers.chakra_nodes import ChakraNodeKind, ChakraTrace, DamagedTrace, Value, attributes_of, number_of, parse
from hwsim.importers.columns import OmittedCounter, RecordingTooLong, SliceColumns
from hwsim.importers.ranks import APART, Process, joined
from hwsim.importers.ranks import number_of as number_in
from hwsim.importers.recording import HOST, RecordedLane, Recording, What
from hwsim.importers.text import damaged

MICRO: Final = 10**9  # fs
MOST_BYTES: Final = 4 << 30  # limit of a decompressed file
_RANK: Final = re.compile(r"(\d{1,9})$")
_EPOCH: Final = 1e9  # s: larger times are since 1970
_CALLS: Final = ("cuda", "hip", "cu")


def read(files: Sequence[Path], report: Callable[[int, int], None] | None = None) -> Recording:
    """Read the files of a run, one per rank, and optionally the ranks of the process groups (comm_group.json).

    Raises:
        SpecError: a file is truncated or no Chakra trace.
    """
    contents = [(file, _content(file)) for file in files]
    groups: dict[str, tuple[int, ...]] = {}
    traces: list[tuple[Path, ChakraTrace]] = []
    size, done = sum(len(data) for _, data in contents), 0
    for file, data in contents:
        named = _groups(data) if data[:1] == b"{" else None
        if named is not None:
            groups |= named
        else:
            traces.append((file, _trace(file, data)))
        done += len(data)
        if report is not None:
            report(done, size)
    if not traces:
        raise damaged(files[0], "the file has only process groups: add the traces of the ranks")
    numbers = [_number(file, trace) for file, trace in traces]
    worlds = [max(0, _own(trace, "world")) for _, trace in traces]
    notes = []
    if not any(worlds) and len(traces) > 1 and sorted(rank for rank in numbers if rank is not None) == list(range(len(traces))):
        worlds = [len(traces)] * len(traces)
        notes.append(f"the files have no number of ranks: {len(traces)} ranks are assumed, one per file")
    timed = any(_has_start(node) for _, trace in traces for node in trace.nodes)
    if not timed:
        notes.append("the files have no start times: an op starts when its dependencies have ended and its lane is free")
    processes = [
        _Reading(file, trace, world, groups).process(number, timed=timed)
        for (file, trace), number, world in zip(traces, numbers, worlds, strict=True)
    ]
    recording = joined("chakra", processes, clocked=timed)
    return replace(recording, zero=recording.zero if recording.zero > _EPOCH else 0.0, notes=(*notes, *recording.notes))


def _content(file: Path) -> bytes:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            data: bytes = opened.read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged(file, f"damaged: {error}") from None
    if len(data) > MOST_BYTES:
        raise damaged(file, f"the file is larger than {MOST_BYTES:,} bytes")
    return data


def _trace(file: Path, data: bytes) -> ChakraTrace:
    try:
        return parse(data)
    except DamagedTrace as error:
        raise damaged(file, f"byte {error.byte}: {error}", "Chakra traces are .et files of protobuf messages, not JSON") from None


def _groups(data: bytes) -> dict[str, tuple[int, ...]] | None:
    """Return the ranks of each process group by name (comm_group.json of ASTRA-sim); None for another file."""
    try:
        named = json.loads(data)
    except (ValueError, RecursionError):
        return None
    lists = named.values() if isinstance(named, dict) else ()
    if not lists or not all(isinstance(ranks, list) and all(type(rank) is int for rank in ranks) for ranks in lists):
        return None
    return {name: tuple(ranks) for name, ranks in named.items()}


def _own(trace: ChakraTrace, name: str) -> int:
    """Return a numeric attribute that hwsim writes, such as `hwsim.rank`; -1 if missing."""
    return number_of((attributes_of(trace.attributes).get(f"hwsim.{name}"),), -1)


def _number(file: Path, trace: ChakraTrace) -> int | None:
    """Return the rank in the attributes of a file, else in its name; None if unknown."""
    own, named = _own(trace, "rank"), number_in(file)
    digits = _RANK.search(file.name.removesuffix(".gz").rpartition(".")[0])
    return own if own >= 0 else named if named is not None else int(digits[1]) if digits else None


def _has_start(node: Any) -> bool:
    """Return whether a node has a start time."""
    return bool(node.start_time_micros) or any(attr.name == "hwsim.start_fs" for attr in node.attr)


class _Reading:
    """A converter of one file to a process."""

    def __init__(self, file: Path, trace: ChakraTrace, world: int, groups: Mapping[str, tuple[int, ...]]) -> None:
        self.file, self.world = file, world
        self.attributes = attributes_of(trace.attributes)
        self.nodes = trace.nodes
        self.values = [attributes_of(node.attr) for node in trace.nodes]
        self.called = any("rf_id" in values for values in self.values)  # written by PyTorch: control dependencies name the caller
        self.lanes: dict[RecordedLane, int] = {}
        self.facts = FactTable(groups, world)
        self.left = OmittedCounter()

    def process(self, number: int | None, *, timed: bool) -> Process:
        """Return the process; timed: whether the files of the run have start times.

        Raises:
            SpecError: dependencies form a cycle, or a number is invalid.
        """
        kept = [op for op, node in enumerate(self.nodes) if node.type not in (ChakraNodeKind.METADATA, ChakraNodeKind.INVALID)]
        waits = self._waits(kept)
        kinds = [self._what(self.nodes[op], self.values[op]) for op in kept]
        lane = [self._lane(self.nodes[op], self.values[op], kind) for op, kind in zip(kept, kinds, strict=True)]
        length = [number_of((self.values[op].get("hwsim.duration_fs"),), self.nodes[op].duration_micros * MICRO) for op in kept]
        if min(length, default=0) < 0:
            raise damaged(self.file, "a negative duration")
        facts = [self.facts.number(self.nodes[op], self.values[op], kind) for op, kind in zip(kept, kinds, strict=True)]
        if len(self.nodes) > len(kept):
            self.left.add(
                "metadata",
                "nodes without work; successors inherit their dependencies",
                0,
                len(self.nodes) - len(kept),
            )
        bare = sum(not length[index] and _asks(self.nodes[node_of]) for index, node_of in enumerate(kept))  # integers
        if bare:
            self.left.add("no duration", "the file has no times of these nodes: add --machine", 0, bare)
        start = self._starts(waits, length, lane, self._known(kept) if timed else [-1] * len(kept))
        if timed:
            waits = self._in_time(waits, start, length)
        columns = SliceColumns()
        for place in self.lanes:
            columns.lane_of(place, place)
        columns.table_of_facts = list(self.facts.numbers)
        try:
            for index, node in enumerate(kept):
                columns.add(kinds[index], self.nodes[node].name, lane[index], start[index], length[index], -1, facts[index])
            columns.flush()
        except RecordingTooLong as error:
            raise damaged(self.file, str(error)) from None
        except OverflowError:
            raise damaged(self.file, "a number is too large") from None
        stated = [(before, then) for then, several in enumerate(waits) for before in several]
        return Process(self.file, number, self.world, "", self._devices(), columns, self.left, stated=stated)

    def _known(self, kept: Sequence[int]) -> list[int]:
        """Return the start times in the file; if the clock counts from 1970, 0 means unknown (-1)."""
        start = [number_of((self.values[op].get("hwsim.start_fs"),), self.nodes[op].start_time_micros * MICRO) for op in kept]
        if min((instant for instant in start if instant), default=0) > APART and not all(start):
            self.left.add("no start", "nodes without a start time start when their last dependency has ended", 0, start.count(0))
            return [instant or -1 for instant in start]
        return start

    def _devices(self) -> tuple[tuple[int, str], ...]:
        numbers = sorted({lane.device for lane in self.lanes if lane.device != HOST})
        return tuple((number, str(self.attributes.get(f"hwsim.gpu.{number}", ""))) for number in numbers)

    def _waits(self, kept: Sequence[int]) -> list[list[int]]:
        """Return the dependencies of each kept node, as positions; those of omitted nodes are passed on to their successors."""
        place = {index: number for number, index in enumerate(kept)}
        by_number = {node.id: index for index, node in enumerate(self.nodes)}
        if len(by_number) < len(self.nodes):
            raise damaged(self.file, f"{len(self.nodes) - len(by_number)} nodes have the id of another node")
        unknown = callers = 0
        waits = []
        for index in kept:
            digits: dict[int, None] = {}
            ahead, seen = [index], {index}
            while ahead:
                node = self.nodes[ahead.pop()]
                if self.called:
                    callers += len(node.ctrl_deps)
                for number in node.data_deps if self.called else (*node.data_deps, *node.ctrl_deps):
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
            self.left.add("dependencies", "dependencies on nodes that are not in the file", 0, unknown)
        if callers:
            self.left.add("callers", "control dependencies of PyTorch traces name the caller, not a dependency", 0, callers)
        return waits

    def _in_time(self, waits: Sequence[Sequence[int]], start: Sequence[int], length: Sequence[int]) -> list[list[int]]:
        """Return the dependencies without those that contradict the recorded times."""
        kept = [[op for op in several if start[op] + length[op] <= start[then]] for then, several in enumerate(waits)]
        wrong = sum(map(len, waits)) - sum(map(len, kept))  # integers
        if wrong:
            self.left.add("dependencies", "dependencies that ended after their successor had started", 0, wrong)
        return kept

    def _what(self, node: Any, values: Mapping[str, Value]) -> What:
        if values.get("is_cpu_op"):
            return What.CALL if node.name.startswith(_CALLS) else What.OP
        if node.type in MEMORY or node.name.startswith("Memcpy"):
            return What.COPY
        return What.SET if node.name.startswith("Memset") else What.KERNEL

    def _lane(self, node: Any, values: Mapping[str, Value], kinds: What) -> int:
        on_host = kinds in (What.OP, What.CALL, What.PYTHON, What.MARK)
        if on_host:
            number = number_of((values.get("tid"),))
            lane = RecordedLane(str(values.get("hwsim.lane", f"thread {number}")), HOST, number)
        else:
            # without a stream: one lane for compute and one for communication, as in ASTRA-sim
            exchanging = int(node.type in COMMUNICATION)
            number = number_of((values.get("stream"), values.get("tid")), exchanging)
            named = "stream" in values or "tid" in values
            called = f"stream {number}" if named else ("compute", "network")[exchanging]
            lane = RecordedLane(str(values.get("hwsim.lane", called)), number_of((values.get("hwsim.device"),)), number)
        return self.lanes.setdefault(lane, len(self.lanes))

    def _starts(
        self, waits: Sequence[Sequence[int]], length: Sequence[int], lane: Sequence[int], known: Sequence[int]
    ) -> list[int]:
        """Return the start of each node: the known one, else when its dependencies have ended and its lane is free (FIFO)."""
        first = min((instant for instant in known if instant >= 0), default=0)
        missing = [len(several) if start < 0 else 0 for several, start in zip(waits, known, strict=True)]
        after: list[list[int]] = [[] for _ in waits]
        for then, several in enumerate(waits):
            for before in several if known[then] < 0 else ():
                after[before].append(then)
        ready = [max(instant, first) for instant in known]
        start, free = [-1] * len(waits), [0] * len(self.lanes)
        queue = [(ready[index], index) for index, count in enumerate(missing) if not count]
        heapify(queue)
        while queue:
            time, at = heappop(queue)
            start[at] = known[at] if known[at] >= 0 else max(time, free[lane[at]])
            end = free[lane[at]] = start[at] + length[at]
            for then in after[at]:
                ready[then] = max(ready[then], end)
                missing[then] -= 1
                if not missing[then]:
                    heappush(queue, (ready[then], then))
        if -1 in start:
            stuck = self.nodes[start.index(-1)].name
            raise damaged(self.file, f"{start.count(-1)} nodes form a dependency cycle, '{stuck}' among them")
        return start


def _asks(node: Any) -> bool:
    """Return whether a node without a duration has work whose time is unknown."""
    return node.type in COMMUNICATION or node.type in MEMORY or any(attr.name == "num_ops" for attr in node.attr)
