"""One channel of a DRAM, command by command; `hwsim.families.requests.dram` combines channels.

The controller schedules the `queue` oldest accesses of a channel; the others wait. Every bank with an access proposes its next
command: the read of its oldest row hit, otherwise the activation of the row of its oldest access. A command is issued at the
first instant that satisfies the timings of its bank (tRC, tRAS, tRTP, tRP, tRCD), bank group (tCCD_L, tRRD_L) and pseudo-channel
(tCCD_S, tRRD_S, four activations per tFAW, data bus). If several commands are ready, that of the oldest access is first. Every
tREFI all rows are closed, and the banks are unavailable for tRFC. Writes are buffered and drained in batches of `write_batch`,
which costs one turnaround of the data bus.

**Source.** Rixner et al., "Memory access scheduling", ISCA 2000 (FR-FCFS); the timings as in `hwsim.devices.dram`.
**Error.** 0.7 to 1.5 % mean against Ramulator 2 on five standards (docs/validation/components.md).
**Range.** Open-page policy, all-bank refresh; no rank switches, no write recovery, no power-down.
"""

from __future__ import annotations

import math
from collections import deque
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple

from hwsim.devices.dram import Dram

_NEVER: Final = math.inf
_LONG_AGO: Final = -1.0  # seconds; before every run, by more than any timing
_ACTIVATE, _COLUMN = 0, 1
_Best = tuple[float, int, int, int]  # time, age, command, bank


class DramAccess(NamedTuple):
    """An access to a channel.

    Args:
        age: order of arrival; the lowest has priority.
        bank, row: its place.
        write: a write; otherwise a read.
        who: identifier for the caller.
    """

    age: int
    bank: int
    row: int
    write: bool
    who: Any


class Channel:
    """A channel: its banks, and the read and write queues of the controller."""

    def __init__(self, dram: Dram) -> None:
        lanes, banks = dram.pseudo_channels, dram.banks * dram.pseudo_channels
        self._dram = dram
        self._lanes = lanes
        self._ccd_s, self._ccd_l = max(dram.tCCD_S, dram.tBL), max(dram.tCCD_L, dram.tBL)
        self._group = [bank % (lanes * dram.bank_groups) for bank in range(banks)]  # numbered over the lanes
        self._groups_of = [range(lane, lanes * dram.bank_groups, lanes) for lane in range(lanes)]
        self._line: deque[DramAccess] = deque()  # arrived, not in a queue yet
        self._room = [dram.queue, dram.queue]  # free queue entries for (reads, writes)
        self._writing = 0  # 1 while writes are drained
        self._batch = dram.write_batch * lanes  # writes of a batch, over all pseudo-channels
        self._written = 0  # writes since the turnaround
        # per bank
        self._open = [-1] * banks
        self._fresh = [False] * banks  # the row was just opened, so its first access is not a hit
        self._act_ok, self._col_ok, self._pre_ok = ([_LONG_AGO] * banks for _ in range(3))
        self._stamp = [0] * banks  # version of the latest plan; older heap entries are void
        self._pending: list[list[dict[int, deque[tuple[float, DramAccess]]]]] = [[{} for _ in range(banks)] for _ in range(2)]
        # per lane, per group
        self._acts = [deque([_LONG_AGO] * 4, 4) for _ in range(lanes)]
        self._col = [_LONG_AGO] * lanes
        self._group_act, self._group_col = ([_LONG_AGO] * (lanes * dram.bank_groups) for _ in range(2))
        self._row_bus = _LONG_AGO
        # candidate commands: later (by ready time) or now (by age); activations per lane, columns per group
        self._act_later: list[list[tuple[float, int, int, int]]] = [[] for _ in range(lanes)]
        self._act_now: list[list[tuple[int, int, int]]] = [[] for _ in range(lanes)]
        self._col_later: list[list[tuple[float, int, int, int]]] = [[] for _ in self._group_col]
        self._col_now: list[list[tuple[int, int, int]]] = [[] for _ in self._group_col]
        self._best: list[_Best | None] = [None] * lanes
        self._refresh = dram.tREFI if dram.tRFC else _NEVER
        self.accesses = self.row_hits = self.activations = self.refreshes = self.turnarounds = 0

    def due(self) -> float:
        """Return the time of the next command (s); infinity without one."""
        return min([best[0] for best in self._best if best is not None], default=_NEVER)

    def arrive(self, access: DramAccess) -> None:
        """Add an access, which `admit` moves into a queue."""
        self._line.append(access)

    def admit(self, time: float) -> None:
        """Move accesses into the queues as long as these have free entries."""
        line, room, stale = self._line, self._room, set()
        if time > self._refresh and not any(self._best):
            self._catch_up(time)
        while line:
            access = line[0]
            row, bank, kind = access.row, access.bank, 1 if access.write else 0
            if not room[kind]:
                break
            line.popleft()
            room[kind] -= 1
            rows = self._pending[kind][bank]
            if row in rows:
                rows[row].append((time, access))
                continue
            rows[row] = deque([(time, access)])
            if kind == self._writing and (len(rows) == 1 or row == self._open[bank]):
                self._plan(bank)
                stale.add(bank % self._lanes)
        if self._should_turn():
            self._turn()
        else:
            for lane in stale:
                self._best[lane] = self._choose(lane)

    def step(self) -> tuple[float, Any] | None:
        """Issue the next command; return (time, `who`) for a read or write, otherwise None."""
        best = min(best for best in self._best if best is not None)
        time, _, command, bank = best
        if time > self._refresh:
            self._refresh_all()
            return None
        lane = bank % self._lanes
        if command == _ACTIVATE:
            self._activate(time, bank, lane)
            return None
        return self._read_or_write(time, bank, lane)

    def _activate(self, time: float, bank: int, lane: int) -> None:
        dram = self._dram
        rows = self._pending[self._writing][bank]
        self._open[bank] = next(iter(rows))
        self._fresh[bank] = True
        self._act_ok[bank], self._col_ok[bank], self._pre_ok[bank] = time + dram.tRC, time + dram.tRCD, time + dram.tRAS
        self._acts[lane].append(time)
        self._group_act[self._group[bank]] = time
        self._col[lane] += dram.open_cost
        self.activations += 1
        self._plan(bank)
        if dram.row_commands:
            self._row_bus = time + dram.row_commands
            self._best = [self._choose(lane) for lane in range(self._lanes)]
        else:
            self._best[lane] = self._choose(lane)

    def _read_or_write(self, time: float, bank: int, lane: int) -> tuple[float, Any]:
        kind = self._writing
        rows = self._pending[kind][bank]
        row = self._open[bank]
        line = rows[row]
        who = line.popleft()[1].who
        if not line:
            del rows[row]
        self._col[lane] = self._group_col[self._group[bank]] = time
        after = time + self._dram.tRTP
        if after > self._pre_ok[bank]:
            self._pre_ok[bank] = after
        self.accesses += 1
        if self._fresh[bank]:
            self._fresh[bank] = False
        else:
            self.row_hits += 1
        self._room[kind] += 1
        self._written += kind
        self._plan(bank)
        self._best[lane] = None
        if self._line:
            self.admit(time)
        if self._should_turn():
            self._turn()
        elif self._best[lane] is None:
            self._best[lane] = self._choose(lane)
        return time, who

    def _plan(self, bank: int) -> None:
        """Schedule the next command of a bank."""
        stamp = self._stamp[bank] = self._stamp[bank] + 1
        rows = self._pending[self._writing][bank]
        if not rows:
            return
        row = self._open[bank]
        if row in rows:
            arrived, access = rows[row][0]
            ready = self._col_ok[bank]
            heappush(self._col_later[self._group[bank]], (max(arrived, ready), access.age, stamp, bank))
            return
        arrived, access = next(iter(rows.values()))[0]
        if row >= 0:
            closed = self._pre_ok[bank]
            arrived = max(arrived, closed) + self._dram.tRP
        ready = self._act_ok[bank]
        heappush(self._act_later[bank % self._lanes], (max(arrived, ready), access.age, stamp, bank))

    def _choose(self, lane: int) -> _Best | None:
        """Return the next command of a pseudo-channel: the first to be ready, or the oldest of those ready at once."""
        dram, stamps = self._dram, self._stamp
        acts = self._acts[lane]
        free = max(acts[0] + dram.tFAW, acts[3] + dram.tRRD_S, self._row_bus)
        soonest = _next_command(self._act_later[lane], self._act_now[lane], free, stamps)
        best: _Best | None = None
        if soonest is not None:
            time, age, bank = soonest
            best = (max(time, self._group_act[self._group[bank]] + dram.tRRD_L), age, _ACTIVATE, bank)
        bus = self._col[lane] + self._ccd_s
        for group in self._groups_of[lane]:
            later, ready = self._col_later[group], self._col_now[group]
            if later or ready:
                free = self._group_col[group] + self._ccd_l
                soonest = _next_command(later, ready, max(bus, free), stamps)
                if soonest is not None and (best is None or soonest < best):
                    best = (soonest[0], soonest[1], _COLUMN, soonest[2])
        return best

    def _should_turn(self) -> bool:
        """Whether to switch between reads and writes."""
        read, write = (self._dram.queue - room for room in self._room)
        if self._writing:
            return read > 0 and (not write or self._written >= self._batch)
        return write >= min(self._batch, self._dram.queue) or (write > 0 and not read)

    def _turn(self) -> None:
        if self._writing:
            self._col = [time + self._dram.turnaround for time in self._col]
            self.turnarounds += 1
        self._writing = 1 - self._writing
        self._written = 0
        self._plan_all()

    def _plan_all(self) -> None:
        for bank in range(len(self._open)):
            self._plan(bank)
        self._best = [self._choose(lane) for lane in range(self._lanes)]

    def _refresh_all(self) -> None:
        """Refresh all banks, which closes all rows."""
        dram = self._dram
        back = self._refresh + dram.tRTP + dram.tRP + dram.tRFC
        self._open = [-1] * len(self._open)
        self._act_ok = [max(time, back) for time in self._act_ok]
        self._refresh += dram.tREFI
        self.refreshes += 1
        self._plan_all()

    def _catch_up(self, now: float) -> None:
        """Apply the refreshes of an idle period."""
        missed = int((now - self._refresh) / self._dram.tREFI)
        self._refresh += missed * self._dram.tREFI
        self.refreshes += missed
        self._refresh_all()


def _next_command(
    later: list[tuple[float, int, int, int]], ready: list[tuple[int, int, int]], free: float, stamps: list[int]
) -> tuple[float, int, int] | None:
    """Return (time, age, bank) of the next command once the bus is free: the oldest ready one, or the first to become ready."""
    while later and later[0][0] <= free:
        _, age, stamp, bank = heappop(later)
        if stamp == stamps[bank]:
            heappush(ready, (age, stamp, bank))
    while ready:
        age, stamp, bank = ready[0]
        if stamp == stamps[bank]:
            return free, age, bank
        heappop(ready)
    while later:
        time, age, stamp, bank = later[0]
        if stamp == stamps[bank]:
            return time, age, bank
        heappop(later)
    return None
