"""The flash of an SSD: chips behind channels, pages that are read and programmed, blocks that are erased.

A chip reads (or programs) a page, and the bytes of the page cross the channel that the chip shares with others. Two limits
apply, in pages per second:

    chips / (read + transfer)   and   channels / (transfer + command)

The result is rounded where both are close, because chips wait for one another at the channel and random pages fall on busy
chips. In steady state, garbage collection moves (amplification - 1) other pages for each page that the host writes, and
erases that page's share of a block.

    amplification = 1 / (1 - p),   (p - 1) / ln p = u = (1 - over-provisioning) / (1 - reserve)

Source of the amplification: greedy collection under uniform random writes; Desnoyers, "Analytic models of SSD write
performance", ACM Transactions on Storage 10(2), 2014; Bux and Iliadis, Performance Evaluation 67(11), 2010.
Error: see docs/validation/components.md (against MQSim; the two roundings are fitted on its random and striped reads).
Range: uniform random or sequential writes; a skewed workload needs less garbage collection. A chip has one program in
progress. Its `dies` work one after another and only lengthen a full stripe, as in MQSim.

The endurance is a number of program/erase cycles, or of bytes written, that the maker guarantees.

    lifetime = endurance / (written x amplification),   endurance = size x cycles
    lifetime = written / rate                            if the maker states the bytes (TBW), amplification included
    written = drive writes per day x size x warranty     if the maker states drive writes per day (DWPD)

Source: JESD218 and JESD219 (JEDEC) define these ratings. Range: wear levelling spreads the writes evenly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Final

from hwsim.demand import soft_min
from hwsim.devices.storage import Direction, StorageAccesses
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import DAY, Bytes, BytesPerSecond, Seconds

YEAR: Final = 365.25 * DAY
RANDOM_KNEE: Final = 1.3  # sharpness of the knee between chips and channels, random pages
STRIPED_KNEE: Final = 2.2  # sharpness of the same knee, pages striped over the channels


@dataclass(frozen=True, slots=True)
class Flash:
    """The geometry and the timings of flash."""

    channels: int = field("number of buses (channels) between the controller and the flash chips", minimum=1)
    chips: int = field("number of chips on each channel, which work in parallel", minimum=1)
    page: Bytes = field("page size: the smallest amount that is read or programmed", exclusive_minimum=0.0, example="16 KiB")
    read: Seconds = field("page read time, from the array into the page register (tR)", exclusive_minimum=0.0, example="75 us")
    program: Seconds = field("page program time, from the page register into the array (tPROG)",
                             exclusive_minimum=0.0, example="750 us")  # fmt: skip
    erase: Seconds = field("block erase time (tBERS)", default=0.0, example="3.8 ms")
    pages_per_block: int = field("number of pages in an erase block", default=256, minimum=1)
    channel: BytesPerSecond = field("bandwidth of one channel", default=333e6, exclusive_minimum=0.0, example="333 MB/s")
    command: Seconds = field("time that the command for each page occupies the channel", default=0.0)
    dies: int = field("number of dies in a chip, which work one after another", default=1, minimum=1)
    planes: int = field("number of planes in a die; multi-plane program if enough writes are queued", default=1, minimum=1)
    blocks: int | None = field("number of erase blocks in a plane; derived from the drive's size if omitted",
                               default=None, minimum=4)  # fmt: skip

    @property
    def all_chips(self) -> int:
        return self.channels * self.chips

    def transfer(self, size: float) -> float:
        """Return the channel time (s) of the bytes of an access of `size` bytes on one page."""
        return min(size, self.page) / self.channel

    def pages(self, size: float) -> int:
        """Return the number of pages of an access that starts at a page boundary."""
        return max(1, math.ceil(size / self.page))

    def one(self, direction: Direction, size: float) -> float:
        """Return the time (s) of a single access, with its pages spread over the channels."""
        page_s = self.read if direction == "read" else self.program
        pages = self.pages(size)
        rounds = math.ceil(pages / self.all_chips)
        return rounds * page_s + math.ceil(pages / self.channels) * self.transfer(size) + self.command

    def reads(self, size: float, striped: bool) -> float:
        """Return the maximum reads per second; `striped`: consecutive pages are on consecutive channels."""
        transfer = self.transfer(size)
        chips = self.all_chips / (self.read + transfer)
        channels = self.channels / (transfer + self.command)
        return soft_min(chips, channels, STRIPED_KNEE if striped else RANDOM_KNEE) / self.pages(size)

    def writes(self, pages: float, transfer: float, amplification: float, planes: float) -> float:
        """Return the maximum writes per second.

        Args:
            pages: pages of a write.
            transfer: channel time of each page (s).
            amplification: write amplification; 0 for an empty drive, where nothing is erased.
            planes: planes of a die that are programmed together.
        """
        moves = max(0.0, amplification - 1.0)
        erase = amplification * self.erase / self.pages_per_block
        busy = (
            max(1.0, amplification) * (self.program / planes + transfer)
            + moves * (self.read / planes + transfer)
            + erase / planes
        )
        wire = (max(1.0, amplification) + moves) * (transfer + self.command)
        return min(self.all_chips / busy, self.channels / wire) / pages

    def planes_at(self, asked_pages: float) -> float:
        """Return the planes of a die in use when `asked_pages` sequential pages are queued; a stripe covers the dies first."""
        return min(float(self.planes), max(1.0, asked_pages / (self.all_chips * self.dies)))


@functools.lru_cache(maxsize=4096)
def amplification(over_provisioning: float, reserve: float = 0.0) -> float:
    """Return the steady-state write amplification: pages programmed for each page of a random host write.

    Args:
        over_provisioning: share of the flash that the host cannot address.
        reserve: share of the flash that is kept free for garbage collection and does not improve it.

    >>> round(amplification(0.28), 2), round(amplification(0.07), 1), amplification(1.0)
    (1.99, 7.3, 1.0)
    """
    utilization = (1.0 - over_provisioning) / (1.0 - reserve)
    if utilization <= 0.0:
        return 1.0
    utilization = min(utilization, 1.0 - 1e-6)
    # (p - 1) / ln p rises from 0 to 1 with p: bisect to the precision of a float.
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if middle <= 0.0 or (middle - 1.0) / math.log(middle) < utilization:
            low = middle
        else:
            high = middle
    return 1.0 / (1.0 - 0.5 * (low + high))


def moved_pages(asked: StorageAccesses, page: float, unit: float, gathers: bool) -> float:
    """Return the pages programmed for one write: whole mapping units, and whole pages unless a buffer gathers writes."""
    rounded = max(1.0, math.ceil(asked.size / unit)) * unit
    return rounded / page if gathers else float(math.ceil(rounded / page))


@dataclass(frozen=True, slots=True)
class Endurance:
    """An endurance rating: total bytes written, drive writes per day, or cycles of each block."""

    written: Bytes | None = field("total bytes written that the maker guarantees (TBW)",
                                  default=None, exclusive_minimum=0.0, example="1.2 PB")  # fmt: skip
    per_day: float | None = field("drive writes per day that the maker guarantees (DWPD)", default=None, exclusive_minimum=0.0)
    warranty: Seconds = field("warranty period to which `per_day` applies", default=5 * YEAR)
    cycles: float | None = field("number of program/erase cycles that each block endures", default=None, exclusive_minimum=0.0)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        count = sum(limit is not None for limit in (self.written, self.per_day, self.cycles))  # integers
        if count != 1:
            hint = "keep one, such as `written: 1.2 PB`, `per_day: 1` or `cycles: 3000`"
            yield "written", f"expected one of `written`, `per_day` and `cycles`, got {count}", hint

    def bytes(self, size: float | None, amplification: float = 1.0) -> float | None:
        """Return the total bytes that the host may write; None if the drive's size is required but unknown.

        >>> Endurance(per_day=1.0, warranty=5 * 365 * 86400.0).bytes(1e12) / 1e15
        1.825
        """
        if self.written is not None:
            return self.written
        if size is None:
            return None
        if self.per_day is not None:
            return self.per_day * size * self.warranty / DAY
        return (self.cycles or 0.0) * size / amplification
