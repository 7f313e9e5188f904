"""A solid-state disk, request by request: flash chips with first-come-first-served queues, and the channels that they share.

    page read  = command on the channel + `read` in the chip + data on the channel
    page write = command and data on the channel + `program` in the chip

A chip executes one command at a time. A multi-plane command covers pages at the same index in a block on several planes of a
die. A channel transfers one item at a time: read data first, then commands in order. Consecutive pages are mapped to consecutive
channels, then chips, dies and planes. Completed data is sent over the link to the host, and new commands are fetched after it.

Garbage collection (`flash_map`) reads, programs and erases in a chip, which is then blocked. This causes slow writes, and slow
reads queued behind them.

**Source.** Agrawal et al., "Design tradeoffs for SSD performance", USENIX ATC 2008; Tavakkol et al., "MQSim: a framework
for enabling realistic studies of modern multi-queue SSD devices", FAST 2018 (mapping of pages, priorities of a channel).
**Error.** calibrate/published/twins_storage.py, against curves of MQSim.
**Range.** No data or mapping cache, no program suspension; pages do not move between planes. The simulated drive has fewer blocks
than the real one (`BLOCKS` per plane) with all ratios equal, so that it reaches its steady state in seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol

from hwsim.devices.flash import Flash
from hwsim.devices.ssd import Ssd
from hwsim.families.requests.flash_map import PlaneMap, worn_planes
from hwsim.families.requests.requests import IssueStream, NoRequestSimulation, RequestColumns, RequestDevice, requests_of
from hwsim.graph.opgraph import Ints
from hwsim.units import BytesPerSecond, Seconds

BLOCKS: Final = 128  # default blocks of a plane

_ISSUE: Final = 0  # event: a stream may issue requests
_FINISH: Final = 1  # event: a request of a stream has completed
_BEGIN: Final = 2  # event: a command, and its write data, has arrived at the drive
_FREE: Final = 3  # event: a contended channel is free
_DONE: Final = 4  # event: a chip has read, programmed or erased
_OUT: Final = 5  # event: a page has been transferred to the controller

_READ: Final = 0
_WRITE: Final = 1


class PageOrder(Protocol):
    """The part of a page map that reads need."""

    def offset(self, page: int) -> int:
        """Return the index of a page in its block."""
        ...


class _Stream(IssueStream):
    """Requests split into pages; `pages`: open pages of each request."""

    __slots__ = ("pages",)

    def __init__(self, served: RequestColumns) -> None:
        super().__init__(served)
        self.pages = [0] * len(served)


# A page: (stream, request, job, bytes, die, plane, index in its block, garbage collection before it in s).
_Page = tuple[_Stream, int, int, int, int, int, int, float]
_NOBODY: Final = _Stream(RequestColumns(at=[], address=[], size=[], write=[], core=[]))


def ssd_play(ssd: Ssd, name: str = "the ssd") -> RequestDevice:
    """Return the simulation of an SSD with `flash:`; with `state: steady`, the drive starts fully written.

    Raises:
        CannotPlay: The SSD has no `flash:`, only values of its data sheet.
    """
    flash = ssd.flash
    if flash is None:
        hint = "add `flash`, or use a part that has it: {use: mqsim-default}"
        raise NoRequestSimulation(f"{name} has no `flash`, which a request-level simulation needs", hint)
    blocks, spare = flash.blocks or BLOCKS, ssd.over_provisioning
    worn = ssd.state == "steady" and spare is not None
    planes = worn_planes(blocks, flash.pages_per_block, spare or 0.0, ssd.reserve) if worn else None
    simulation = SsdSimulation(flash, link=ssd.interface or math.inf, overhead=ssd.controller, planes=planes)
    pages = flash.all_chips * flash.dies * flash.planes * blocks * flash.pages_per_block
    return RequestDevice(simulation, ssd.size or pages * flash.page, requests_of)


class SsdSimulation:
    """The request-level simulation of an SSD; implements `RequestSimulation`.

    Args:
        flash: geometry and timings.
        link: bandwidth between host and drive, in each direction (bytes/s).
        overhead: controller time of each request (s).
        planes: function that makes the page map of a plane (see `worn_planes`); None: a sequentially written drive that never
            collects garbage.
        placed: function that makes the page order of a plane, for a drive that is only read; None: sequential order.
    """

    def __init__(
        self,
        flash: Flash,
        *,
        link: BytesPerSecond = math.inf,
        overhead: Seconds = 0.0,
        planes: Callable[[], PlaneMap] | None = None,
        placed: Callable[[], PageOrder] | None = None,
    ) -> None:
        self._flash, self._link, self._overhead = flash, link, overhead
        self._new_map, self._maps = planes, dict[int, PlaneMap]()
        # By plane: (pending collection time, share of it before each write to the freed block) in s.
        self._owed: dict[int, list[float]] = {}
        self._new_place, self._places = placed, dict[int, PageOrder]()
        # Copies of properties for speed.
        self._page, self._chips, self._channels = int(flash.page), flash.all_chips, flash.channels
        self._planes, self._dies, self._places_in_block = flash.planes, flash.dies, flash.pages_per_block
        self._ordered = planes is None and placed is None
        chips, channels = self._chips, self._channels
        self._queue: list[deque[_Page]] = [deque() for _ in range(chips)]
        self._running: list[list[_Page]] = [[] for _ in range(chips)]  # pages of the running command of each chip
        self._inside = [0] * chips  # pages of it still in the chip
        self._began = [0.0] * chips
        self._asking: list[deque[int]] = [deque() for _ in range(channels)]  # idle chips with queued pages
        self._leaving: list[deque[tuple[int, float]]] = [deque() for _ in range(channels)]  # (chip, bytes) of data to transfer
        self._free = [0.0] * channels  # time until which a channel is busy
        self._woken = [False] * channels  # an event at that time is scheduled
        self._inward = self._outward = 0.0  # time until which the link from and to the host is busy
        self._heap: list[tuple[float, int, int, int, _Stream]] = []  # (time, order, event, chip or request, stream)
        self._order = count().__next__
        self._chip_time, self._channel_time = [0.0] * chips, [0.0] * channels
        self._written = self._read = 0
        self._run = self._run_function()

    @property
    def counters(self) -> dict[str, float]:
        """Counts of pages read, written and moved, erased blocks, write amplification, busy times of chips and channels (s)."""
        moved, erased = (sum(getattr(plane, name) for plane in self._maps.values()) for name in ("moved", "erased"))  # integers
        numbers: dict[str, float] = {
            "pages_read": self._read,
            "chip_s": math.fsum(self._chip_time),
            "channel_s": math.fsum(self._channel_time),
        }
        if self._written:
            numbers |= {"pages_written": self._written, "write_amplification": (self._written + moved) / self._written}
        return numbers | ({"pages_moved": moved, "blocks_erased": erased} if self._maps and self._written else {})

    def units(self, address: Ints) -> tuple[Ints, str]:
        return address // self._page % self._chips, "chip"

    def offer(self, served: RequestColumns) -> None:
        if len(served):
            heappush(self._heap, (served.at[0], self._order(), _ISSUE, 0, _Stream(served)))

    def due(self) -> float:
        return self._heap[0][0] if self._heap else math.inf

    def advance(self, until: float) -> None:
        self._run(until)

    def _run_function(self) -> Callable[[float], None]:
        """Return the function of `advance`; closures over local names make it fast."""
        heap, order, queues, running, inside = self._heap, self._order, self._queue, self._running, self._inside
        channels, planes, link, overhead = self._channels, self._planes, self._link, self._overhead
        asking, leaving, free, woken = self._asking, self._leaving, self._free, self._woken
        began, chip_time, channel_time = self._began, self._chip_time, self._channel_time
        bandwidth, command = self._flash.channel, self._flash.command
        read, program = self._flash.read, self._flash.program

        def grant(time: float, channel: int) -> None:
            """Assign the channel, once it is free, to read data, or to the next command."""
            going, wanting = leaving[channel], asking[channel]
            if not (going or wanting):
                return
            if time < free[channel]:
                if not woken[channel]:
                    woken[channel] = True
                    heappush(heap, (free[channel], order(), _FREE, channel, _NOBODY))
                return
            if going:
                chip, size = going.popleft()
                busy_s = size / bandwidth
                heappush(heap, (time + busy_s, order(), _OUT, chip, _NOBODY))
            else:
                chip = wanting.popleft()
                queue = queues[chip]
                first = queue.popleft()
                batch = [first]
                if queue and planes > 1:
                    _take_multi_plane(queue, batch, planes)
                job, busy_s, work = first[2], command, read
                if job == _WRITE:
                    work = program + max([page[7] for page in batch])
                    for page in batch:
                        busy_s += page[3] / bandwidth
                running[chip], inside[chip], began[chip] = batch, len(batch), time
                heappush(heap, (time + busy_s + work, order(), _DONE, chip, _NOBODY))
                if wanting and not woken[channel]:
                    woken[channel] = True
                    heappush(heap, (time + busy_s, order(), _FREE, channel, _NOBODY))
            free[channel] = time + busy_s
            channel_time[channel] += busy_s

        def run(until: float) -> None:
            while heap and heap[0][0] <= until:
                time, _, event, who, stream = heappop(heap)
                if event in (_DONE, _OUT):
                    channel, batch = who % channels, running[who]
                    if event == _OUT:  # after the last page of a request, its data enters the link
                        page = batch[-inside[who]]
                        inside[who] -= 1
                        stream, request = page[0], page[1]
                        stream.pages[request] -= 1
                        if stream.pages[request] == 0:
                            sent = max(time, self._outward)
                            self._outward = sent = sent + stream.served.size[request] / link
                            self._answer(sent + overhead, request, stream)
                    elif batch[0][2] == _READ:
                        for page in batch:
                            leaving[channel].append((who, page[3]))
                    else:
                        inside[who] = 0
                        for stream, request, *_ in batch:
                            stream.pages[request] -= 1
                            if stream.pages[request] == 0:
                                self._answer(time + overhead, request, stream)
                    if inside[who] == 0:
                        running[who] = []
                        chip_time[who] += time - began[who]
                        if queues[who]:
                            asking[channel].append(who)
                    grant(time, channel)
                elif event == _FREE:
                    woken[who] = False
                    grant(time, who)
                else:
                    if event == _BEGIN:
                        self._begin(time, who, stream, grant)
                        continue
                    if event == _FINISH:
                        stream.flying -= 1
                    self._issue(time, stream, grant)

        return run

    def _issue(self, time: float, stream: _Stream, grant: Callable[[float, int], None]) -> None:
        """Issue the requests of a stream that have arrived, up to its depth."""
        served = stream.served
        for request in stream.issue(time):
            begin = self._outward
            if served.write[request]:
                begin = self._inward = max(time, begin, self._inward) + served.size[request] / self._link
            if begin > time:
                heappush(self._heap, (begin, self._order(), _BEGIN, request, stream))
            else:
                self._begin(time, request, stream, grant)
        if (later := stream.upcoming) is not None:
            heappush(self._heap, (later, self._order(), _ISSUE, 0, stream))

    def _begin(self, time: float, request: int, stream: _Stream, grant: Callable[[float, int], None]) -> None:
        """Queue the pages of a request at their chips."""
        served, page_size, chips, channels = stream.served, self._page, self._chips, self._channels
        served.start[request] = time
        job = _WRITE if served.write[request] else _READ
        address = served.address[request]
        end = address + served.size[request]
        number, last = address // page_size, (end - 1) // page_size
        stream.pages[request] = last + 1 - number
        if job == _WRITE:
            self._written += last + 1 - number
        else:
            self._read += last + 1 - number
        while number <= last:
            low, high = number * page_size, (number + 1) * page_size
            size = min(end, high) - max(address, low)
            chip, row = number % chips, number // chips
            die, row = row % self._dies, row // self._dies
            plane, row = row % self._planes, row // self._planes
            queue, channel = self._queue[chip], chip % channels
            if not queue and not self._running[chip]:
                self._asking[channel].append(chip)
            offset, first = row % self._places_in_block, 0.0
            if not self._ordered:
                offset, first = self._locate((chip * self._dies + die) * self._planes + plane, row, job)
            queue.append((stream, request, job, size, die, plane, offset, first))
            grant(time, channel)
            number += 1

    def _locate(self, plane: int, row: int, job: int) -> tuple[int, float]:
        """Return (index in its block of a page, garbage collection before its write in s)."""
        if self._new_place is not None:
            if plane not in self._places:
                self._places[plane] = self._new_place()
            return self._places[plane].offset(row), 0.0
        assert self._new_map is not None
        if job == _READ:
            pages = self._maps.get(plane)
            return (row % self._places_in_block if pages is None else pages.offset(row % len(pages.where))), 0.0
        if plane not in self._maps:
            self._maps[plane], self._owed[plane] = self._new_map(), [0.0, 0.0]
        pages, owed = self._maps[plane], self._owed[plane]
        row %= len(pages.where)
        offset, moved, erased = pages.write(row)
        if erased:
            owed[0] += moved * (self._flash.read + self._flash.program) + erased * self._flash.erase
            owed[1] = owed[0] / self._places_in_block
        paid = min(owed)
        owed[0] -= paid
        return offset, paid

    def _answer(self, finish: float, request: int, stream: _Stream) -> None:
        if stream.finish(request, finish):
            heappush(self._heap, (finish, self._order(), _FINISH, 0, stream))


def _take_multi_plane(queue: deque[_Page], batch: list[_Page], planes: int) -> None:
    """Move to `batch` the pages of a multi-plane command: same job, die and index in the block, on different planes."""
    _, _, job, _, die, plane, offset, _ = batch[0]
    taken, places = {plane}, []
    for index, page in enumerate(queue):
        if page[6] == offset and page[4] == die and page[2] == job and page[5] not in taken:
            taken.add(page[5])
            places.append(index)
            if len(taken) == planes:
                break
    batch += [queue[place] for place in places]
    for index in reversed(places):
        del queue[index]
