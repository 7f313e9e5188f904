"""A replay as a workload in hwsim's language: a statement for each piece of host work, launch, kernel and copy.

Pieces of a thread in a row that wait for nothing and start nothing become one statement. A launch takes its latency in a
queue of its own, so that launches do not wait for one another.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import hwsim.engine
from hwsim.importers.recording import Ints
from hwsim.importers.replay import Part, Replay
from hwsim.importers.steps import Step, steps
from hwsim.importers.threads import STEP
from hwsim.spec import Place, SpecError
from hwsim.spec.writing import scalar
from hwsim.ticks import FEMTO

MOST: Final = 60_000  # statements; a file of more is too large to be read
_WIDE: Final = 96  # letters of a name
_HEAD: Final = 4096  # bytes that tell whose file it is
SOURCE: Final = "source: a recording"


def write(
    replay: Replay, path: Path, times: float = 1.0, by_name: Mapping[str, float] | None = None, about: Sequence[str] = ()
) -> Path:
    """Write the whole replay as a workload. The path, which ends in .yaml.

    Args:
        times, by_name: factors on the time of GPU ops, as of `Replay.scaled`.
        about: what the times are, a line of a comment each.

    Raises:
        SpecError: it has too many ops.
    """
    text = _Statements(replay, replay.scaled(times, by_name).blocks[0].time).text(about)
    path.write_text(text, encoding="utf-8")
    return path


def is_step(path: Path) -> bool:
    """Whether a file was written by `write`, or is empty."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head or (head.startswith(b"hwsim: workload/1") and SOURCE.encode() in head)


def _median(marked: list[Step]) -> str:
    """Number of the step of median length, of those that most ranks have."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for step in marked:
        ranks[step.name].add(step.rank)
    most = max(len(found) for found in ranks.values())
    found = [step for step in marked if len(ranks[step.name]) == most]
    lengths = sorted((step.end - step.start, step.name) for step in found if step.rank == found[0].rank)
    return lengths[len(lengths) // 2][1].removeprefix(STEP).lstrip("#")


class _Statements:
    """The ops of a replay as statements."""

    def __init__(self, replay: Replay, time: Ints) -> None:
        self.replay = replay
        body = replay.graph.blocks[0]
        self.time: list[int] = time.tolist()
        self.queue: list[int] = body.queue.tolist()
        self.part: list[int] = replay.part.tolist()
        self.labels = [replay.graph.labels[number] for number in body.label.tolist()]
        self.after: list[list[int]] = [[] for _ in self.time]
        self.then: list[list[int]] = [[] for _ in self.time]
        for before, then in body.edges[:, :2].tolist():
            self.after[then].append(before)
            self.then[before].append(then)
        self.name = [label.name for label in self.labels]
        self.into = self._merged()
        self.starts = self._starts()

    def _merged(self) -> list[int]:
        """For each op the one whose statement it is part of."""
        into, longest = list(range(len(self.time))), [0] * len(self.time)
        last: dict[int, int] = {}
        for op, queue in enumerate(self.queue):
            if queue < 0:
                continue
            before = last.get(queue, -1)
            last[queue] = op
            longest[op] = self.time[op]
            if before < 0 or self.then[before] or self.after[op] or not self._may_merge(before, op):
                continue
            first = into[op] = into[before]
            self.time[first] += self.time[op]
            if self.part[op] == Part.HOST and self.time[op] * FEMTO > 0 and longest[first] < longest[op]:
                longest[first], self.name[first] = longest[op], self.name[op]
            self.then[first] = self.then[op]
        return into

    def _may_merge(self, before: int, op: int) -> bool:
        parts = self.part[before], self.part[op]
        return parts == (Part.HOST, Part.HOST) or (parts[1] == Part.GAP and parts[0] in (Part.DEVICE, Part.COLLECTIVE))

    def _starts(self) -> list[int]:
        """Start of each op in the replay, for the order of the statements."""
        starts: list[int] = hwsim.engine.simulate(self.replay.graph).start.tolist()
        return starts

    def text(self, about: Sequence[str]) -> str:
        """The file.

        Raises:
            SpecError: too many statements.
        """
        written = [op for op in self._order() if self.into[op] == op and self.part[op] != Part.MEET]
        if len(written) > MOST:
            marked = steps(self.replay.recording)
            several = len({step.name for step in marked}) > 1
            less = f"--step {_median(marked)}, which is of median length" if several else "fewer ranks"
            message = f"the recording has {len(written):,} statements, and a file of YAML holds {MOST:,}"
            raise SpecError.of(Place(self.replay.recording.ranks[0].file, 0, 0), message, f"write -o step.npz, or take {less}")
        devices = self._devices()
        names = self._names(written)
        lanes = max(2, 2 * self._most_launches() + 2)
        lines = [
            "hwsim: workload/1",
            f"name: {scalar(self._title())}",
            "# Times of host and GPU; rules say what waits for what: launches, streams, events, calls that block.",
            *(f"# {' '.join(line.split())}" for line in about or ("The times are the recorded ones.",)),
            SOURCE,
            f"let: {{{', '.join(f'{key}: {part}' for key, part in devices.items())}}}",
            "program:",
        ]
        launches = 0
        for op in written:
            queue = self.queue[op]
            device = f"${self._device(op)}"
            if queue >= 0:
                in_queue = self.replay.graph.queues[queue].name
            else:
                in_queue, launches = f"launch {launches % lanes}", launches + 1
                device = f"${self._device(self.then[op][0])}"
            waits = self._waits(op)
            after = f", after: [{', '.join(scalar(names[before]) for before in waits)}]" if waits else ""
            time = f"{self.time[op] / 1e9:.9f}".rstrip("0").rstrip(".")
            about = f"device: {device}, queue: {scalar(in_queue)}, time: {time} us, fixed: true"
            lines.append(f"  - busy: {{name: {scalar(names[op])}, {about}{after}}}{self._comment(op)}")
        return "\n".join([*lines, ""])

    def _title(self) -> str:
        """Name of the workload: the step, if it has one alone, and the files."""
        recording = self.replay.recording
        files = list(dict.fromkeys(Path(rank.file).name for rank in recording.ranks))
        names = ", ".join(files) if len(files) < 3 else f"{files[0]} and {len(files) - 1} more"
        marked = {step.name for step in steps(recording)}
        return f"{marked.pop()} of {names}" if len(marked) == 1 else names

    def _waits(self, op: int) -> list[int]:
        """Statements that an op waits for, a meeting of ranks as all that arrive at it."""
        found: set[int] = set()
        for before in self.after[op]:
            found |= set(self.after[before]) if self.part[before] == Part.MEET else {before}
        return sorted({self.into[before] for before in found})

    def _order(self) -> list[int]:
        """Ops in an order in which each comes after what it waits for, the earlier first."""
        missing = [len(before) for before in self.after]
        follow = [list(then) for then in self.then]
        last: dict[int, int] = {}
        for op, queue in enumerate(self.queue):
            if queue >= 0:
                if queue in last:
                    follow[last[queue]].append(op)
                    missing[op] += 1
                last[queue] = op
        ready = [(self.starts[op], op) for op, count in enumerate(missing) if not count]
        heapq.heapify(ready)
        order = []
        while ready:
            _, op = heapq.heappop(ready)
            order.append(op)
            for then in follow[op]:
                missing[then] -= 1
                if not missing[then]:
                    heapq.heappush(ready, (self.starts[then], then))
        return order

    def _names(self, written: list[int]) -> dict[int, str]:
        """Names of the statements. A number makes a name its own where a later statement means an op that is not the last."""
        plain = {op: self.name[op][:_WIDE].replace("$", "_") for op in written}
        latest: dict[str, int] = {}
        unclear: set[int] = set()
        for op in written:
            unclear |= {before for before in self._waits(op) if latest[plain[before]] != before}
            latest[plain[op]] = op
        count: dict[str, int] = defaultdict(int)
        for op in [each for each in written if each in unclear]:
            name = plain[op]
            count[name] += 1
            plain[op] = f"{name} no. {count[name]}"
        return plain

    def _most_launches(self) -> int:
        """Launches in flight at the same time, at most."""
        times = []
        for op, queue in enumerate(self.queue):
            if queue < 0 and self.part[op] == Part.LAUNCH:
                times += [(self.starts[op], 1), (self.starts[op] + self.time[op], -1)]
        count = most = 0
        for _, change in sorted(times):
            count += change
            most = max(most, count)
        return most

    def _device(self, op: int) -> str:
        """Parameter that names the device of an op."""
        device: str = self.labels[op].device
        return device.replace(".", "_")

    def _devices(self) -> dict[str, str]:
        """Parameters for the devices, and the parts of a machine that they are if nothing is set."""
        names = sorted({self._device(op) for op in range(len(self.time)) if self.labels[op].device})
        gpus = [name for name in names if "host" not in name]
        return {name: "cpu" if name not in gpus else "gpu" if len(gpus) == 1 else f"gpu{gpus.index(name)}" for name in names}

    def _comment(self, op: int) -> str:
        """The op around a kernel with the shapes of its inputs."""
        if self.part[op] not in (Part.DEVICE, Part.COLLECTIVE):
            return ""
        explained = self.replay.ranks[int(self.replay.rank[op])]
        around = int(explained.linked.shaped[self.replay.slice[op]])
        if around < 0:
            around = int(explained.linked.op[self.replay.slice[op]])
            return f"  # {explained.rank.names[explained.rank.slices.name[around]]}" if around >= 0 else ""
        shapes = explained.rank.facts[explained.rank.slices.facts[around]].shapes or ()
        words = " ".join(str(list(shape)) for shape in shapes if shape)
        return f"  # {explained.rank.names[explained.rank.slices.name[around]]} {words}"[:160]
