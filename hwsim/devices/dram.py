"""DRAM of any type (DDR, LPDDR, HBM, GDDR) in one closed form over the timings of its standard.

Requests per second of one channel, a share `h` of them row hits, spread over `B` banks, with `Q` of them in the queue:

    X = min(banks, activations, columns) x (1 - refresh)
    banks        B u E[k] / E[max(tRC, tRCD + (k - 1) tCCD_L + tRTP + tRP)],  k ~ geometric: accesses of one activation
                 u = Q / (Q + (B - 1)/2): random requests leave some banks idle (1 if requests take the banks in turn)
    activations  pseudo-channels x min(4/tFAW, 1/tRRD_S) / (1 - h)
    columns      pseudo-channels / (max(tBL, tCCD_S, tCCD_L / bank groups) + (1 - h) open_cost)
    refresh      (tRTP + tRP + tRFC + tRCD) / tREFI

**Source.** JEDEC JESD79-4, JESD79-5, JESD235, JESD238, JESD250, JESD209-4 for the meaning of the timings; Little's law for
requests in flight; loaded latency fitted to Intel Memory Latency Checker (see `loaded_latency`).
**Error.** Against Ramulator 2 on DDR4, DDR5, HBM2, HBM3 and GDDR6: sweeps over banks 0.2 to 1.2 % mean, 7 % worst. Over row
hits 1.9 to 3.5 % mean, 19 % worst; streams of reads 0.2 %, of reads and writes 0.7 % (docs/validation/components.md).
**Range.** Open-page policy, all-bank refresh, one direction at a time. The error is largest where two limits meet. Writes
mixed at random with reads in one row cost more than `read_write_factor` predicts; there, simulate request by request.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, Literal

from hwsim.demand import soft_min
from hwsim.formats import format_quantity
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, Seconds, TransfersPerSecond

Row = Literal["hit", "closed", "conflict"]

# timings that must fit between two refreshes
_BETWEEN: Final = ("tRC", "tRAS", "tRRD_S", "tRRD_L", "tFAW", "tCCD_S", "tCCD_L", "row_commands", "open_cost", "turnaround")
ROW_COMMANDS_KNEE: Final = 6.0  # sharpness of the knee between banks and the row command bus; HBM2 with 16 banks


@dataclass(frozen=True, slots=True)
class Dram:
    """A memory channel, and the number of such channels.

    The data bus has `width` bits; pseudo-channels divide it, and each has its own banks and activation windows.
    """

    rate: TransfersPerSecond = field("transfers per second of a data pin", exclusive_minimum=0.0, example="3200 MT/s")
    width: int = field("number of data pins of a channel, all pseudo-channels together", minimum=1)
    access: Bytes = field("size of one access: burst length x data pins", exclusive_minimum=0.0, example="64 B")
    banks: int = field("number of banks of a pseudo-channel, all ranks together", minimum=1)
    tRCD: Seconds = field("delay from activate to read", exclusive_minimum=0.0)
    tCL: Seconds = field("CAS latency: delay from read to first data", exclusive_minimum=0.0)
    tRP: Seconds = field("delay from precharge to activate", exclusive_minimum=0.0)
    tRAS: Seconds = field("delay from activate to precharge", exclusive_minimum=0.0)
    tRC: Seconds = field("row cycle time: delay between activates of the same bank", exclusive_minimum=0.0)
    tRTP: Seconds = field("delay from read to precharge", default=0.0)
    tRRD_S: Seconds = field("delay between activates in different bank groups", default=0.0)
    tRRD_L: Seconds = field("delay between activates in the same bank group", default=0.0)
    tFAW: Seconds = field("four-activate window: any such interval contains at most four activates", default=0.0)
    tCCD_S: Seconds = field("delay between reads in different bank groups", default=0.0)
    tCCD_L: Seconds = field("delay between reads in the same bank group", default=0.0)
    tRFC: Seconds = field("duration of an all-bank refresh; 0 disables refresh", default=0.0)
    tREFI: Seconds = field("average interval between two refreshes", default=3.9e-6, exclusive_minimum=0.0)
    channels: int = field("number of populated channels", default=1, minimum=1)
    pseudo_channels: int = field("number of pseudo-channels of a channel; 1 if it has none", default=1, minimum=1)
    bank_groups: int = field("number of bank groups per pseudo-channel", default=1, minimum=1)
    row: Bytes = field("row (page) size: bytes that one activate opens", default=8192.0, exclusive_minimum=0.0)
    row_commands: Seconds = field("row command bus time of an activate and its precharge; 0: the bus does not limit", default=0.0)
    open_cost: Seconds = field("data bus time lost by each activate if row and column commands share a bus", default=0.0)
    turnaround: Seconds = field("idle time of the data bus for a change from reads to writes and back", default=0.0)
    write_batch: int = field("queued writes at which the controller switches from reads to writes", default=20, minimum=1)
    queue: int = field("number of queued requests among which a channel's controller chooses", default=32, minimum=1)
    controller: Seconds = field("round-trip time of the memory controller and the on-chip fabric", default=0.0)
    load_slope: float = field("coefficient a of loaded / unloaded latency = 1 + a rho / (1 - c rho) at utilization rho",
                              default=0.53, minimum=0.0)  # fmt: skip
    load_knee: float = field("coefficient c of loaded / unloaded latency = 1 + a rho / (1 - c rho) at utilization rho",
                             default=0.0, minimum=0.0, maximum=0.99)  # fmt: skip

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        if self.tRC < self.tRAS:
            yield "tRC", f"expected at least tRAS, {self.tRAS * 1e9:g} ns, got {self.tRC * 1e9:g} ns", "tRC is about tRAS + tRP"
        if self.access > self.row:
            yield "access", f"expected at most the size of a row, {self.row:g} B, got {self.access:g} B", None
        if self.refresh >= 1:
            yield "tRFC", "refresh would take all of the time", "tRFC is far shorter than tREFI"
        for key, span in {"rate": self.tBL, **{key: getattr(self, key) for key in _BETWEEN}}.items() if self.tRFC else ():
            if span >= self.tREFI:
                value, limit = format_quantity(span, "s"), format_quantity(self.tREFI, "s")
                yield key, f"expected less than tREFI, {limit}, got {value}: no access would end between two refreshes", None
        if self.banks % self.bank_groups:
            yield "bank_groups", f"expected a divisor of the {self.banks} banks, got {self.bank_groups}", None

    # ---- bandwidth ----

    @property
    def peak(self) -> float:
        """Peak bandwidth of the data pins of all channels (B/s)."""
        return self.channels * self.width / 8 * self.rate

    @property
    def tBL(self) -> float:  # noqa: N802 (as the standard calls it)
        """Time of one access on the data bus of its pseudo-channel (s)."""
        return self.access * 8 * self.pseudo_channels / (self.width * self.rate)

    @property
    def refresh(self) -> float:
        """Share of the time spent on refresh, in which rows are closed, refreshed and opened again."""
        return (self.tRTP + self.tRP + self.tRFC + self.tRCD) / self.tREFI if self.tRFC else 0.0

    def stream(self, read_share: float = 1.0) -> float:
        """Return the bandwidth (B/s) of one long read, or mix of reads and writes, over all banks and channels."""
        hit = max(0.0, 1 - self.access / self.row)
        per_channel = self._columns(self.banks * self.pseudo_channels, hit) * (1 - self.refresh)
        return self.channels * per_channel * self.access * self.read_write_factor(read_share)

    def read_write_factor(self, read_share: float) -> float:
        """Return the share of the bandwidth that remains if the bus keeps changing direction; 1 for reads or writes alone.

            1 / (1 + (share of the rarer direction, at most half, taken in batches) x turnaround / (write_batch tBL))

        A batch of writes is followed by the reads that arrived meanwhile, and costs one turnaround. If writes outnumber reads,
        there is still at most one batch of reads between two batches of writes.
        """
        rarer = min(read_share, 1 - read_share)
        return 1 / (1 + rarer * self.turnaround / (self.write_batch * self.tBL))

    # ---- random access ----

    def random_rate(
        self, banks: int | None = None, row_hit: float = 0.0, requests_in_flight: float | None = None, *, regular: bool = False
    ) -> float:
        """Return the accesses per second that complete in all channels together.

        Args:
            banks: number of banks of each channel that are accessed; default: all.
            row_hit: share of row hits.
            requests_in_flight: requests in flight over all channels; default: full queues.
            regular: whether requests take the banks in turn instead of at random.
        """
        bank_count = self.banks * self.pseudo_channels
        used_banks = bank_count if banks is None else max(1, min(banks, bank_count))
        hit = min(max(row_hit, 0.0), 1.0)
        queued = float(self.queue)
        if requests_in_flight is not None:
            queued = min(queued, max(requests_in_flight, 0.0) / self.channels)
        busy_share = 1.0 if regular else queued / (queued + (used_banks - 1) / 2) if queued > 0 else 0.0
        per_channel = used_banks * busy_share / self._bank_time(hit)
        if self.row_commands:
            per_channel = soft_min(per_channel, _rate_limit(1.0, self.row_commands * (1 - hit)), ROW_COMMANDS_KNEE)
        bus_count = min(self.pseudo_channels, used_banks)
        activation_s = max(self.tFAW / 4, self.tRRD_S) * (1 - hit)
        per_channel = min(per_channel, _rate_limit(bus_count, activation_s), self._columns(used_banks, hit)) * (1 - self.refresh)
        rate = self.channels * per_channel
        if requests_in_flight is None:
            return rate
        waits = hit * self.latency("hit") + (1 - hit) * self.latency("conflict")
        return min(rate, requests_in_flight / waits)

    def _bank_time(self, hit: float) -> float:
        """Return the average time (s) of an access in its bank: E[max(tRC, ...)] / E[k], in closed form."""
        step = max(self.tCCD_L, self.tBL)
        open_s = self.tRCD + self.tRTP + self.tRP
        hidden_accesses = 0 if open_s >= self.tRC else math.floor((self.tRC - open_s) / step) + 1  # accesses that fit into tRC
        tail_share = hit**hidden_accesses
        cycle = self.tRC * (1 - tail_share) + tail_share * (open_s + hidden_accesses * step)
        return (1 - hit) * cycle + tail_share * hit * step

    def _columns(self, banks: int, hit: float) -> float:
        """Return the limit of a channel's data buses and column commands (accesses/s)."""
        bus_count = min(self.pseudo_channels, banks)
        groups = min(self.bank_groups, max(1, banks // bus_count))
        access_s = max(self.tBL, self.tCCD_S, max(self.tCCD_L, self.tBL) / groups)
        return bus_count / (access_s + (1 - hit) * self.open_cost)

    # ---- latency ----

    def latency(self, row: Row = "conflict") -> float:
        """Return the unloaded latency (s) from a request to its last byte; `row`: open, closed, or another row is open."""
        opening = {"hit": 0.0, "closed": self.tRCD, "conflict": self.tRP + self.tRCD}[row]
        return self.controller + opening + self.tCL + self.tBL

    def loaded_latency(self, rho: float) -> float:
        """Return the latency of an access (s) at a utilization `rho` of the bandwidth: latency x (1 + a rho / (1 - c rho)).

        **Source.** Intel Memory Latency Checker on two Xeon Silver 4110, published; a and c fitted to every other point.
        **Error.** 2.7 % mean, 5 % worst on the points that were not fitted.
        **Range.** Up to full load, that is, the sustained bandwidth of the machine, not the peak of the pins.
        """
        load = min(max(rho, 0.0), 1.0)
        return self.latency() * (1 + self.load_slope * load / (1 - self.load_knee * load))


def _rate_limit(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0 else math.inf


D2L: Final = Dram(  # the d2l text's numbers: 100 ns, then 0.2 ns per 8-byte word; four banks
    rate=2.5e9, width=128, access=64, banks=4, tRCD=30e-9, tCL=30e-9, tRP=30e-9, tRAS=70e-9, tRC=100e-9, controller=10e-9
)  # fmt: skip
