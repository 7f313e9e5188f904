"""Chakra execution traces (`.et`) as a recording; a file is a rank.

Times are whole microseconds of any clock. Many files have none: then each op starts as soon as what it waits for has ended and
its lane is free. hwsim's own files keep femtoseconds in attributes of their own (`hwsim.start_fs`, `hwsim.duration_fs`), which
others ignore.
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

from hwsim.importers.chakra_facts import COMMUNICATION, MEMORY, Describing
from hwsim.importers.chakra_nodes import Damaged, Kind, Trace, Value, attributes_of, number_of, parse
from hwsim.importers.columns import Columns, LeftOut, TooLong
from hwsim.importers.ranks import APART, Process, joined
from hwsim.importers.ranks import number_of as number_in
from hwsim.importers.recording import HOST, Lane, Recording, What
from hwsim.importers.text import damaged

MICRO: Final = 10**9  # fs
MOST_BYTES: Final = 4 << 30  # of a file, unpacked
_RANK: Final = re.compile(r"(\d{1,9})$")
_EPOCH: Final = 1e9  # seconds: clocks that show more count from 1970
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
        named = _groups(data) if data[:1] == b"{" else None
        if named is not None:
            groups |= named
        else:
            traces.append((file, _trace(file, data)))
        done += len(data)
        if report is not None:
            report(done, size)
    if not traces:
        raise damaged(files[0], "this names process groups; where are the traces of the ranks?")
    numbers = [_number(file, trace) for file, trace in traces]
    worlds = [max(0, _own(trace, "world")) for _, trace in traces]
    notes = []
    if not any(worlds) and len(traces) > 1 and sorted(each for each in numbers if each is not None) == list(range(len(traces))):
        worlds = [len(traces)] * len(traces)
        notes.append(f"the files do not say how many ranks the run has: {len(traces)}, as there are files")
    timed = any(_has_start(node) for _, trace in traces for node in trace.nodes)
    if not timed:
        notes.append("the files have no starts: an op starts when what it waits for has ended and its lane is free")
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
        raise damaged(file, f"more than {MOST_BYTES:,} bytes")
    return data


def _trace(file: Path, data: bytes) -> Trace:
    try:
        return parse(data)
    except Damaged as error:
        raise damaged(
            file, f"byte {error.byte}: {error}", "Chakra traces are .et files of protobuf messages, not their JSON"
        ) from None


def _groups(data: bytes) -> dict[str, tuple[int, ...]] | None:
    """Ranks of each process group by name, if that is what the file has (ASTRA-sim's comm_group.json)."""
    try:
        named = json.loads(data)
    except (ValueError, RecursionError):
        return None
    lists = named.values() if isinstance(named, dict) else ()
    if not lists or not all(isinstance(ranks, list) and all(type(rank) is int for rank in ranks) for ranks in lists):
        return None
    return {name: tuple(ranks) for name, ranks in named.items()}


def _own(trace: Trace, name: str) -> int:
    """A number of a file's own attributes, `hwsim.rank` say; -1 if it has none."""
    return number_of((attributes_of(trace.attributes).get(f"hwsim.{name}"),), -1)


def _number(file: Path, trace: Trace) -> int | None:
    """The rank that a file says, else the number in its name or at the end of it; None without one."""
    own, named = _own(trace, "rank"), number_in(file)
    digits = _RANK.search(file.name.removesuffix(".gz").rpartition(".")[0])
    return own if own >= 0 else named if named is not None else int(digits[1]) if digits else None


def _has_start(node: Any) -> bool:
    """Whether a file says when a node started."""
    return bool(node.start_time_micros) or any(each.name == "hwsim.start_fs" for each in node.attr)


class _Reading:
    """A file on its way to a rank."""

    def __init__(self, file: Path, trace: Trace, world: int, groups: Mapping[str, tuple[int, ...]]) -> None:
        self.file, self.world = file, world
        self.attributes = attributes_of(trace.attributes)
        self.nodes = trace.nodes
        self.values = [attributes_of(node.attr) for node in trace.nodes]
        self.called = any("rf_id" in values for values in self.values)  # of PyTorch: a control dependency is the caller
        self.lanes: dict[Lane, int] = {}
        self.facts = Describing(groups, world)
        self.left = LeftOut()

    def process(self, number: int | None, *, timed: bool) -> Process:
        """The rank; timed: whether the files of the run have starts.

        Raises:
            SpecError: nodes that wait for one another, and numbers that are none.
        """
        kept = [at for at, node in enumerate(self.nodes) if node.type not in (Kind.METADATA, Kind.INVALID)]
        waits = self._waits(kept)
        kinds = [self._what(self.nodes[at], self.values[at]) for at in kept]
        lane = [self._lane(self.nodes[at], self.values[at], kind) for at, kind in zip(kept, kinds, strict=True)]
        length = [number_of((self.values[at].get("hwsim.duration_fs"),), self.nodes[at].duration_micros * MICRO) for at in kept]
        if min(length, default=0) < 0:
            raise damaged(self.file, "a duration below zero")
        facts = [self.facts.number(self.nodes[at], self.values[at], kind) for at, kind in zip(kept, kinds, strict=True)]
        if len(self.nodes) > len(kept):
            self.left.add("metadata", "nodes of no work; what waits for them waits for theirs", 0, len(self.nodes) - len(kept))
        bare = sum(not length[at] and _asks(self.nodes[node_of]) for at, node_of in enumerate(kept))  # integers
        if bare:
            self.left.add("no duration", "the file leaves their time to a simulator: give a machine", 0, bare)
        start = self._starts(waits, length, lane, self._known(kept) if timed else [-1] * len(kept))
        if timed:
            waits = self._in_time(waits, start, length)
        columns = Columns()
        for place in self.lanes:
            columns.lane_of(place, place)
        columns.table_of_facts = list(self.facts.numbers)
        try:
            for at, node in enumerate(kept):
                columns.add(kinds[at], self.nodes[node].name, lane[at], start[at], length[at], -1, facts[at])
            columns.flush()
        except TooLong as error:
            raise damaged(self.file, str(error)) from None
        except OverflowError:
            raise damaged(self.file, "a number that is too large") from None
        stated = [(before, then) for then, several in enumerate(waits) for before in several]
        return Process(self.file, number, self.world, "", self._devices(), columns, self.left, stated=stated)

    def _known(self, kept: Sequence[int]) -> list[int]:
        """Starts as the file has them, -1 for a node without one: where the clock counts from 1970, that has none."""
        start = [number_of((self.values[at].get("hwsim.start_fs"),), self.nodes[at].start_time_micros * MICRO) for at in kept]
        if min((each for each in start if each), default=0) > APART and not all(start):
            self.left.add("no start", "they start when the last that they wait for has ended", 0, start.count(0))
            return [each or -1 for each in start]
        return start

    def _devices(self) -> tuple[tuple[int, str], ...]:
        numbers = sorted({lane.device for lane in self.lanes if lane.device != HOST})
        return tuple((number, str(self.attributes.get(f"hwsim.gpu.{number}", ""))) for number in numbers)

    def _waits(self, kept: Sequence[int]) -> list[list[int]]:
        """Places among those kept that each waits for; what waits for a node that is not kept waits for what that waits for."""
        place = {at: number for number, at in enumerate(kept)}
        by_number = {node.id: at for at, node in enumerate(self.nodes)}
        if len(by_number) < len(self.nodes):
            raise damaged(self.file, f"{len(self.nodes) - len(by_number)} nodes have the number of another one")
        unknown = callers = 0
        waits = []
        for at in kept:
            digits: dict[int, None] = {}
            ahead, seen = [at], {at}
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
            self.left.add("dependencies", "on nodes that the file does not have", 0, unknown)
        if callers:
            self.left.add("callers", "PyTorch's control dependencies name who called, not what to wait for", 0, callers)
        return waits

    def _in_time(self, waits: Sequence[Sequence[int]], start: Sequence[int], length: Sequence[int]) -> list[list[int]]:
        """Without dependencies that the recorded times contradict."""
        kept = [[at for at in several if start[at] + length[at] <= start[then]] for then, several in enumerate(waits)]
        wrong = sum(map(len, waits)) - sum(map(len, kept))  # integers
        if wrong:
            self.left.add("dependencies", "on what ended after its successor had started", 0, wrong)
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
            lane = Lane(str(values.get("hwsim.lane", f"thread {number}")), HOST, number)
        else:
            # where no stream is named: computing and exchanging at a time, as ASTRA-sim does
            exchanging = int(node.type in COMMUNICATION)
            number = number_of((values.get("stream"), values.get("tid")), exchanging)
            named = "stream" in values or "tid" in values
            called = f"stream {number}" if named else ("compute", "network")[exchanging]
            lane = Lane(str(values.get("hwsim.lane", called)), number_of((values.get("hwsim.device"),)), number)
        return self.lanes.setdefault(lane, len(self.lanes))

    def _starts(
        self, waits: Sequence[Sequence[int]], length: Sequence[int], lane: Sequence[int], known: Sequence[int]
    ) -> list[int]:
        """Start of each: the known one, else after what it waits for, when its lane is free; who is ready first goes first."""
        first = min((each for each in known if each >= 0), default=0)
        missing = [len(several) if start < 0 else 0 for several, start in zip(waits, known, strict=True)]
        after: list[list[int]] = [[] for _ in waits]
        for then, several in enumerate(waits):
            for before in several if known[then] < 0 else ():
                after[before].append(then)
        ready = [max(each, first) for each in known]
        start, free = [-1] * len(waits), [0] * len(self.lanes)
        queue = [(ready[at], at) for at, count in enumerate(missing) if not count]
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
            raise damaged(self.file, f"{start.count(-1)} nodes wait for one another in a circle, '{stuck}' among them")
        return start


def _asks(node: Any) -> bool:
    """Whether a node without a duration is one whose time is to be found."""
    return node.type in COMMUNICATION or node.type in MEMORY or any(each.name == "num_ops" for each in node.attr)
