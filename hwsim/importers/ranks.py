"""Join the processes of several files into one recording: rank numbers, common time zero and clock offsets.

Ranks of one host share a clock. Other hosts are shifted until their collectives end together: a collective ends on all ranks
within microseconds, because no rank has its result before the last rank has sent. The shift is the median difference over the
collectives that a host has in common with the host of the first rank. If the files mark steps, only collectives of equally named
steps are compared. Files of different runs are refused.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hwsim.formats import format_quantity, natural
from hwsim.importers.collective_matches import collective_of, is_exchange
from hwsim.importers.columns import OmittedCounter, SliceColumns
from hwsim.importers.recording import (
    OmittedEvents,
    Rank,
    RecordedCollective,
    RecordedDependencies,
    RecordedLane,
    Recording,
    SliceFacts,
    Small,
)
from hwsim.importers.slice_links import link
from hwsim.importers.steps import of_rank
from hwsim.importers.text import damaged
from hwsim.importers.threads import STEP
from hwsim.records import dataclass
from hwsim.ticks import FEMTO

T = TypeVar("T")
_RANK: Final = re.compile(r"(?:rank|worker|local_rank|(?<![a-z])r)[-_.]?(\d{1,7})(?!\d)", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"\.(\d{1,7})\.(?:et|json)")
LATE: Final = 0.01  # share of the run: a larger difference between the starts of the files has a note
APART: Final = 3600 * FEMTO  # fs between the starts of two files: a larger difference means two runs


@dataclass(frozen=True, slots=True)
class Process:
    """A process that a reader has found.

    Args:
        file: path of the file.
        number: rank; None if unknown.
        world: number of ranks in the job; 0 if unknown.
        host: host name; "" if unknown.
        devices: (number, name) of each GPU that it used.
        columns: its slices.
        left: omitted events.
        epoch: zero of its clock, in fs since 1970; 0 if unknown.
        pids: process ids of its host threads.
        stated: dependencies in the file, as pairs of indices into `columns`.
    """

    file: Path
    number: int | None
    world: int
    host: str
    devices: tuple[tuple[int, str], ...]
    columns: SliceColumns
    left: OmittedCounter
    epoch: int = 0
    pids: frozenset[int] = frozenset()
    stated: Sequence[tuple[int, int]] | None = None


def number_of(file: Path) -> int | None:
    """Return the rank in the name of a file; None if it has none.

    >>> number_of(Path("trace_rank12.json.gz")), number_of(Path("worker0_step_12.169.pt.trace.json")), number_of(Path("a.json"))
    (12, 0, None)
    """
    match = _RANK.search(file.name) or _NUMBERED.search(file.name)
    return int(match[1]) if match else None


def joined(format: str, processes: Sequence[Process], *, clocked: bool = True) -> Recording:  # noqa: A002 (the word of the field)
    """Return one recording of all processes.

    Args:
        clocked: whether the files have start times (see `Recording`).

    Raises:
        SpecError: a process has no event, two processes have one rank, or the processes are of different runs.
    """
    notes = []
    for process in processes:
        if not len(process.columns):
            rest = "; ".join(f"{row.count} x {cleaned(row.name)}: {row.why}" for row in process.left.rows()[:3])
            raise damaged(process.file, "no known event in the file", rest or "was the profiler on while the program ran?")
    if len({(process.file.resolve(), process.pids) for process in processes}) < len(processes):
        raise damaged(processes[0].file, "the file is given twice", "give each rank once")
    worlds = sorted({process.world for process in processes if process.world})
    if len(worlds) > 1:
        odd = next(process for process in processes if process.world == worlds[0])
        raise damaged(odd.file, f"the file is of a run of {worlds[0]} ranks, another file of a run of {worlds[1]}",
                      "import the traces of all ranks of one run")  # fmt: skip
    numbers: dict[int, Process] = {}
    for process in processes:
        if worlds and (process.number or 0) >= worlds[0]:
            raise damaged(process.file, f"expected a rank from 0 to {worlds[0] - 1}, got {process.number}")
    unknown = sorted(
        (proc for proc in processes if proc.number is None), key=lambda each: (natural(str(each.file)), min(each.pids, default=0))
    )
    for process in processes:
        if process.number is None:
            continue
        if process.number in numbers:
            same = numbers[process.number].file
            raise damaged(process.file, f"the file is of rank {process.number}, like {same}", "give each rank once")
        numbers[process.number] = process
    for process in unknown:
        number = next(number for number in range(len(processes) + 1) if number not in numbers)
        numbers[number] = process
        if len(processes) > 1:
            source = f"process {min(process.pids)} of {process.file}" if process.pids else str(process.file)
            notes.append(f"{source} has no rank number: rank {number} is assumed, by order of the file names")
    zeros = {n: proc.epoch + (proc.columns.first or 0) + int(proc.columns.start.min()) for n, proc in numbers.items()}
    zero = min(zeros.values())
    early, late = min(zeros, key=lambda n: zeros[n]), max(zeros, key=lambda n: zeros[n])
    if zeros[late] - zero > APART:
        hours = (zeros[late] - zero) / FEMTO / 3600
        message = f"the file begins {hours:.3g} h after {numbers[early].file}, so it is of another run"
        raise damaged(numbers[late].file, message, "import the traces of all ranks of one run")
    ranks = [_rank(n, numbers[n], process_zero=zeros[n] - zero, world=worlds[0] if worlds else 0) for n in sorted(numbers)]
    shifts, clock_notes = offsets(ranks) if clocked else ([0] * len(ranks), [])
    ranks = [_shifted(rank, shift) for rank, shift in zip(ranks, shifts, strict=True)]
    begins = [int(rank.slices.start.min()) for rank in ranks]
    apart, length = max(begins) - min(begins), max(int(rank.slices.end.max()) for rank in ranks) - min(begins)
    if clocked and apart > LATE * length:
        notes.append(f"files begin up to {format_quantity(apart / FEMTO, 's')} apart: a rank is idle until its file begins")
    left = OmittedCounter()
    for process in processes:
        for row in process.left.rows():
            left.add(cleaned(row.name), row.why, row.duration, row.count)
    rows: tuple[OmittedEvents, ...] = left.rows()
    return Recording(format, tuple(ranks), rows, zero / FEMTO if zero > 0 else 0.0, (*notes, *clock_notes), clocked=clocked)


def _rank(number: int, process: Process, process_zero: int, world: int) -> Rank:
    columns = process.columns
    slices, order = columns.slices(process_zero - int(columns.start.min()))
    stated = None
    if process.stated is not None:
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        pairs = np.array(process.stated, np.int64).reshape(-1, 2)
        stated = RecordedDependencies(place[pairs[:, 0]], place[pairs[:, 1]])
    return Rank(
        number, world, str(process.file), cleaned(process.host), cleaned(process.devices), slices, cleaned(tuple(columns.names)),
        cleaned(tuple(columns.table_of_lanes)), cleaned(tuple(columns.table_of_facts)), stated,
    )  # fmt: skip


def _shifted(rank: Rank, shift: int) -> Rank:
    if not shift:
        return rank
    slices = replace(rank.slices, start=rank.slices.start + shift)
    return replace(rank, slices=slices, shift=shift)


def cleaned(value: T) -> T:
    r"""Return the value with unprintable characters of its texts as Python escapes, also in tuples and records.

    >>> cleaned(("a\x1b[31mb", 7))
    ('a\\x1b[31mb', 7)
    """
    new: Any = value
    if isinstance(value, str) and not value.isprintable():
        new = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in value)
    elif isinstance(value, tuple):
        new = tuple(map(cleaned, value))
    elif isinstance(value, SliceFacts | RecordedCollective | RecordedLane):
        new = replace(value, **{name: cleaned(getattr(value, name)) for name in value.__slots__})
    return new if new != value else value


TOGETHER: Final = frozenset({"allreduce", "allgather", "reduce-scatter", "alltoall", "sendrecv", "barrier"})
SAME: Final = FEMTO // 1000  # fs: smaller offsets of unnamed hosts are ignored, as they may share a clock
UNSURE: Final = FEMTO // 1000  # fs between the quartiles of the differences: a larger spread means a mismatch
FEW: Final = 2  # number of values without quartiles

Meeting = tuple[str, int, tuple[int, ...], str, int, str]  # key of a collective: name, elements, ranks, group, stream, step


def offsets(ranks: Sequence[Rank]) -> tuple[list[int], list[str]]:
    """Return the shift of the clock of each rank (fs), and notes."""
    if len(ranks) < FEW:
        return [0] * len(ranks), []
    hosts: dict[str, list[int]] = defaultdict(list)
    for index, rank in enumerate(ranks):
        hosts[rank.host or f"rank {rank.number}"].append(index)
    if len(hosts) < FEW:
        return [0] * len(ranks), []
    by_step = all(any(name.startswith(STEP) for name in rank.names) for rank in ranks)
    first, ends = ranks[0], [_ends(rank, by_step=by_step) for rank in ranks]
    shifts, notes = [0] * len(ranks), []
    for name, members in hosts.items():
        if 0 in members:
            continue
        late = [
            difference
            for member in members
            for difference in _differences(first.number, ends[0], ranks[member].number, ends[member])
        ]
        is_named = bool(first.host and ranks[members[0]].host)
        shift, words = _shift(late, is_named=is_named)
        if words:
            notes.append(f"the clock of {name} {words}")
        for index in members:
            shifts[index] = shift
    return shifts, notes


def _shift(late: list[int], *, is_named: bool) -> tuple[int, str]:
    """Return the shift of a host (fs), and a predicate for its note; "" for no note."""
    if not late:
        return 0, "is not shifted: it has no collective in common with the first rank" if is_named else ""
    middle = round(median(late))
    low, _, high = quantiles(late, n=4) if len(late) > FEW else (min(late), middle, max(late))
    if not is_named and abs(middle) < SAME:
        return 0, ""
    if high - low > UNSURE:
        spread = format_quantity((high - low) / FEMTO, "s")
        return 0, f"is not shifted: the offsets from its {len(late)} collectives differ by {spread}"
    sign = "later" if middle > 0 else "earlier"
    return middle, f"is shifted {format_quantity(abs(middle) / FEMTO, 's')} {sign}, to align the ends of {len(late)} collectives"


def _ends(rank: Rank, *, by_step: bool) -> dict[Meeting, list[int]]:
    """Return the ends of the collectives of a rank, in order, by key; by_step: the key includes the launching step."""
    slices = rank.slices
    meetings: dict[Meeting, list[int]] = defaultdict(list)
    linked = link(rank)
    kernels = np.flatnonzero(is_exchange(rank))
    names = _steps(rank, linked.call[kernels], kernels) if by_step else [""] * len(kernels)
    ends = slices.end
    for kernel, step in zip(kernels.tolist(), names, strict=True):
        collective = collective_of(rank, linked, kernel)
        if collective is not None and collective.name in TOGETHER:
            stream = rank.lanes[slices.lane[kernel]].number if not collective.ranks else 0
            key = collective.name, collective.elements_in, collective.ranks, collective.group, stream, step
            meetings[key].append(int(ends[kernel]))
    return meetings


def _steps(rank: Rank, call: Small, kernels: NDArray[np.intp]) -> list[str]:
    """Return the name of the step in which each kernel is launched; "" for none."""
    marked = of_rank(rank)
    if not marked:
        return [""] * len(kernels)
    time = rank.slices.start[np.where(call >= 0, call, kernels)]
    marks = sorted((step.start, step.end, step.name) for step in marked)
    at = np.searchsorted([start for start, _, _ in marks], time, side="right") - 1
    return [marks[n][2] if n >= 0 and begun < marks[n][1] else "" for n, begun in zip(at.tolist(), time.tolist(), strict=True)]


def _differences(first: int, ends: dict[Meeting, list[int]], second: int, others: dict[Meeting, list[int]]) -> list[int]:
    """Return how much later the collectives end on the first rank (fs), for keys that occur equally often on both."""
    late = []
    for meeting, times in ends.items():
        ranks, theirs = meeting[2], others.get(meeting, [])
        if len(theirs) == len(times) and (not ranks or {first, second} <= set(ranks)):
            late += [mine - their for mine, their in zip(times, theirs, strict=True)]
    return late
