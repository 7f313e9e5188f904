"""DRAM, request by request: banks with open rows, and a first-ready, first-come-first-served controller (FR-FCFS).

Requests are split into accesses, which are mapped to channels (`dram_channel`) by their address. A request is complete when the
data of its last access has arrived.

**Source.** Rixner et al., "Memory access scheduling", ISCA 2000 (FR-FCFS); the timings as in `hwsim.devices.dram`.
**Error.** 0.7 to 1.5 % mean against Ramulator 2 on five standards (docs/validation/components.md).
**Range.** As in `hwsim.families.requests.dram_channel`. It simulates about 54,000 accesses per second of CPU time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from heapq import heappop, heappush
from typing import Final

import numpy as np

from hwsim.demand import Requests
from hwsim.devices import Gpu, Memory
from hwsim.devices.dram import Dram
from hwsim.families.requests.dram_channel import Channel, DramAccess
from hwsim.families.requests.requests import (
    MOST_REQUESTS,
    IssueStream,
    NoRequestSimulation,
    RequestColumns,
    RequestDevice,
    requests_of,
)
from hwsim.graph.opgraph import Ints

_NEVER: Final = math.inf
_SPAN: Final = 2.0**33  # bytes: default size of a channel


class DramSimulation:
    """The request-level simulation of a DRAM with all its channels.

    Address mapping, from the lowest bits: channel, pseudo-channel, bank group, column, bank, row.
    """

    def __init__(self, dram: Dram) -> None:
        self._dram = dram
        self._channels = [Channel(dram) for _ in range(dram.channels)]
        self._due = [_NEVER] * dram.channels
        self._events: list[tuple[float, int, _Issuer, int]] = []  # (time, order, op to issue from, completed requests)
        self._order = 0
        self._age = 0

    @property
    def counters(self) -> dict[str, float]:
        """Number of accesses, row hits, activations, refreshes and bus turnarounds, over all channels."""
        names = ("accesses", "row_hits", "activations", "refreshes", "turnarounds")
        return {name: float(sum(getattr(channel, name) for channel in self._channels)) for name in names}  # integers

    def units(self, address: Ints) -> tuple[Ints, str]:
        channel, bank, _ = map_lines(self._dram, address // max(1, int(self._dram.access)))
        return channel * self._dram.banks * self._dram.pseudo_channels + bank, "bank"

    def offer(self, served: RequestColumns) -> None:
        if len(served):
            self._at(served.at[0], _Issuer(served, self._dram), 0)

    def due(self) -> float:
        return min(*self._due, self._events[0][0] if self._events else _NEVER)

    def advance(self, until: float) -> None:
        due, channels, events = self._due, self._channels, self._events
        while True:
            soonest = min(due)
            if events and events[0][0] <= soonest:
                if events[0][0] > until:
                    return
                time, _, issuer, ended = heappop(events)
                self._issue(time, issuer, ended)
                continue
            if soonest > until or soonest == _NEVER:
                return
            number = due.index(soonest)
            channel = channels[number]
            done = channel.step()
            due[number] = channel.due()
            if done is not None:
                time, (issuer, access) = done
                issuer.answer(access, time)
                if issuer.served.depth is not None and issuer.left[issuer.request[access]] == 0:
                    self._at(issuer.served.finish[issuer.request[access]], issuer, 1)

    def _at(self, time: float, issuer: _Issuer, ended: int) -> None:
        heappush(self._events, (time, self._order, issuer, ended))
        self._order += 1

    def _issue(self, time: float, issuer: _Issuer, ended: int) -> None:
        """Issue the requests that may be issued now, and schedule the next issue."""
        issuer.flying -= ended
        if not ended:
            issuer.armed = False
        touched = set()
        for request in issuer.issue(time):
            for access in range(issuer.first[request], issuer.first[request + 1]):
                number = issuer.channel[access]
                place = issuer.bank[access], issuer.row[access], issuer.write[access]
                self._channels[number].arrive(DramAccess(self._age, *place, (issuer, access)))
                self._age += 1
                touched.add(number)
        for number in touched:
            self._channels[number].admit(time)
            self._due[number] = self._channels[number].due()
        if (later := issuer.upcoming) is not None and not issuer.armed:
            issuer.armed = True
            self._at(later, issuer, 0)


class _Issuer(IssueStream):
    """The requests of an op, split into accesses. `armed`: an event for the next request is scheduled."""

    __slots__ = ("armed", "bank", "channel", "first", "left", "request", "row", "tail", "write")

    def __init__(self, served: RequestColumns, dram: Dram) -> None:
        super().__init__(served)
        size = max(1, int(dram.access))
        address, length = np.array(served.address, np.int64), np.array(served.size, np.int64)
        lines = address // size
        counts = (address + np.maximum(length, 1) - 1) // size - lines + 1
        total = int(counts.sum())
        if total > 16 * MOST_REQUESTS:
            hint = "fewer bytes, or `fidelity: formula`, which has no limit"
            raise NoRequestSimulation(f"{total:,} accesses of {size} bytes exceed the limit for request-level simulation", hint)
        first = np.concatenate([[0], np.cumsum(counts)])
        line = np.repeat(lines - first[:-1], counts) + np.arange(total)
        self.channel, self.bank, self.row = (column.tolist() for column in map_lines(dram, line))
        self.request = np.repeat(np.arange(len(counts)), counts).tolist()
        self.write = np.repeat(np.array(served.write, np.bool_), counts).tolist()
        self.first, self.left = first.tolist(), counts.tolist()
        self.armed = True
        self.tail = dram.latency("hit")

    def answer(self, access: int, column: float) -> None:
        """Record the column command of an access."""
        served, i, end = self.served, self.request[access], column + self.tail
        if self.left[i] == self.first[i + 1] - self.first[i]:
            served.start[i] = column
            served.finish[i] = end
        elif end > served.finish[i]:
            served.finish[i] = end
        self.left[i] -= 1
        if not self.left[i]:
            served.left -= 1


def map_lines(dram: Dram, line: Ints) -> tuple[Ints, Ints, Ints]:
    """Return channel, bank in the channel and row of accesses; `line`: address / access size."""
    line, channel = np.divmod(line, dram.channels)
    line, lane = np.divmod(line, dram.pseudo_channels)
    line, group = np.divmod(line, dram.bank_groups)
    line = line // max(1, int(dram.row / dram.access))
    row, inside = np.divmod(line, dram.banks // dram.bank_groups)
    return channel, (inside * dram.bank_groups + group) * dram.pseudo_channels + lane, row


def address(dram: Dram, channel: int, bank: int, row: int, column: int = 0) -> int:
    """Return the address of an access (bytes), the inverse of `map_lines`.

    >>> from hwsim.devices.dram import D2L
    >>> map_lines(D2L, np.array([address(D2L, 0, 3, 7) // 64]))
    (array([0]), array([3]), array([7]))
    """
    inside, rest = divmod(bank, dram.pseudo_channels * dram.bank_groups)
    group, lane = divmod(rest, dram.pseudo_channels)
    line = (row * (dram.banks // dram.bank_groups) + inside) * max(1, int(dram.row / dram.access)) + column
    line = (line * dram.bank_groups + group) * dram.pseudo_channels + lane
    return (line * dram.channels + channel) * int(dram.access)


def addresses(
    dram: Dram, count: int, *, banks: int | None = None, row_hit: float = 0.0, seed: int = 0, regular: bool = False
) -> list[int]:
    """Return addresses of accesses with a given bank parallelism and row-hit rate.

    Args:
        dram: the DRAM.
        count: number of accesses.
        banks: number of banks of each channel in use; None: all.
        row_hit: probability that an access repeats the last row of its bank.
        seed: seed of rows and banks.
        regular: use the banks in turn; otherwise at random.
    """
    draw = np.random.default_rng(seed)
    bank_count = dram.banks * dram.pseudo_channels
    used = bank_count if banks is None else max(1, min(banks, bank_count))
    channel, turn = np.arange(count) % dram.channels, np.arange(count) // dram.channels
    bank = turn % used if regular else draw.integers(0, used, count)
    rows, again = draw.integers(0, 1 << 16, count).tolist(), (draw.random(count) < row_hit).tolist()
    last: dict[tuple[int, int], int] = {}
    chosen = []
    for place, row, same in zip(zip(channel.tolist(), bank.tolist(), strict=True), rows, again, strict=True):
        last[place] = row = last.get(place, row) if same else row
        chosen.append(address(dram, *place, row))
    return chosen


def gpu_play(gpu: Gpu, name: str) -> RequestDevice:
    """Return the simulation of a GPU's memory."""
    return dram_play(gpu.memory.dram, gpu.memory.size, name)


def memory_play(memory: Memory, name: str) -> RequestDevice:
    """Return the simulation of a memory device."""
    return dram_play(memory.dram, memory.size, name)


def dram_play(dram: Dram | None, size: float | None, name: str = "the memory") -> RequestDevice:
    """Return the simulation of a DRAM.

    Raises:
        CannotPlay: The device has no DRAM timings.
    """
    if dram is None:
        raise NoRequestSimulation(f"{name} has no DRAM timings", "add `use: ddr4-3200` to its `memory`")
    timing = dram

    def requests(wanted: Requests, span: float, time: float) -> RequestColumns:
        if wanted.pattern == "sequential" and 0 < wanted.size < timing.access:  # neighbours share an access
            wanted = replace(wanted, count=math.ceil(wanted.count * wanted.size / timing.access), size=timing.access)
        served = requests_of(wanted, span, time)
        if wanted.pattern in ("random", "dependent") and (wanted.banks is not None or wanted.row_hit > 0):
            served.address = addresses(timing, len(served), banks=wanted.banks, row_hit=wanted.row_hit, seed=wanted.seed)
        return served

    return RequestDevice(DramSimulation(dram), size or _SPAN * dram.channels, requests, dram.loaded_latency)
