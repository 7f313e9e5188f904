"""Several disks as one: striping (RAID 0), mirrors (1 and 10), parity (5 and 6).

| level | capacity | reads | sequential writes | accesses of one small write                              |
| 0     | n        | n     | n                 | 1                                                        |
| 1     | 1        | n     | 1                 | n                                                        |
| 10    | n/2      | n     | n/2               | 2                                                        |
| 5     | n - 1    | n - 1 | n - 1             | 4: data and parity are read, then both are written       |
| 6     | n - 2    | n - 2 | n - 2             | 6: as level 5, with two parities                         |

Random accesses are spread evenly over the n members: with D accesses in flight, each member has D / n in flight, or D of the n
members are busy. An access larger than the `stripe` unit occupies several members at once. A write with parity has two steps:
the old data and parity are read (or the rest of the stripe, if that is less: half of the members at most), then the new data and
parity are written.
Source: Patterson, Gibson and Katz, "A case for redundant arrays of inexpensive disks", SIGMOD 1988; Chen et al., "RAID:
high-performance, reliable secondary storage", ACM Computing Surveys 26(2), 1994.
Error: arithmetic on the model of a member; random accesses are assumed to be perfectly balanced over the members.
Range: no failed member; no controller cache. Random writes of whole stripes still include the read step, although they would not
need it. The smallest parity arrays (level 5: 3 members; level 6: 4 or 5) read fewer blocks for a small write than the next larger
array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final, Literal

from hwsim.demand import Capacity, Cost, Crowd, Term, rates_of
from hwsim.devices.contention import ArrayMembers
from hwsim.devices.disk import Disk
from hwsim.devices.hdd import Hdd
from hwsim.devices.kind import Storage, prefix_problems
from hwsim.devices.roofline import WORKLOAD, source_of
from hwsim.devices.ssd import Ssd
from hwsim.devices.storage import Direction, StorageAccesses, mixed_cost
from hwsim.devices.volume import Volume
from hwsim.formats import precise
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes

RaidLevel = Literal[0, 1, 5, 6, 10]

_LEAST: Final[dict[int, int]] = {0: 1, 1: 2, 5: 3, 6: 4, 10: 4}
_PARITIES: Final[dict[int, int]] = {5: 1, 6: 2}


@dataclass(frozen=True, slots=True)
class Raid(Storage):
    """An array of identical members; exactly one of hdd, ssd, disk and volume describes a member."""

    kind: ClassVar[str] = "raid"
    level: RaidLevel = field("RAID level: 0, 1, 5, 6 or 10")
    members: int = field("number of member disks", minimum=1)
    stripe: Bytes = field("stripe unit (chunk): consecutive bytes on one member", default=65536.0, exclusive_minimum=0.0)
    hdd: Hdd | None = field("model of each member if it is a hard disk, e.g. {use: hdd-7200rpm}", default=None)
    ssd: Ssd | None = field("model of each member if it is an SSD, e.g. {use: nvme-pm9a3}", default=None)
    disk: Disk | None = field("model of each member by bandwidth and latency alone", default=None)
    volume: Volume | None = field("model of each member if it is a cloud volume", default=None)

    def problems(self) -> Iterator[Problem]:
        members = [(key, member) for key, member in self._models() if member is not None]
        if len(members) != 1:
            yield (
                "members",
                f"expected one kind of member disk, got {len(members)}",
                "one of `hdd`, `ssd`, `disk` and `volume`, such as `hdd: {use: hdd-7200rpm}`",
            )
        for key, member in members:
            yield from prefix_problems(key, member.problems())
        if self.members < _LEAST[self.level]:
            yield "members", f"RAID {self.level} requires at least {_LEAST[self.level]} disks, got {self.members}", None
        elif self.level == 10 and self.members % 2:
            yield "members", f"RAID 10 requires an even number of disks, got {self.members}", None

    def capacities(self, name: str) -> tuple[Capacity, ...]:
        return tuple(self.member.capacities(name))

    @property
    def member(self) -> Disk | Hdd | Ssd | Volume:
        """Model of one member disk."""
        return next(member for _, member in self._models() if member is not None)

    @property
    def size(self) -> float | None:
        """Capacity of the array (B); None if unlimited."""
        member_size = self.member.size
        return None if member_size is None else member_size * self.width("write")

    def width(self, direction: Direction) -> int:
        """Return the number of members that transfer distinct bytes of a sequential op at the same time."""
        n = self.members
        if self.level in _PARITIES:
            return n - _PARITIES[self.level]
        if self.level == 0 or direction == "read":
            return n
        return 1 if self.level == 1 else n // 2

    def serve(self, name: str, direction: Direction, accesses: StorageAccesses) -> Cost:
        """Return the cost at the busiest member, which has an equal share of all accesses."""
        share, idle, part = self._member_share(direction, accesses)
        cost = mixed_cost(self.member, name, share) if share.written else self.member.serve(name, direction, share)
        label = "work of each member"
        kind = f"accesses ({share.written:.3g} writes)" if share.written else f"{direction}s"
        value = f"{share.times:.6g} {kind} of {precise(share.size, 'B')}, {share.depth:.4g} at once"
        source = f"RAID {self.level} of {self.members}, level: " + source_of(self.sources, "level")
        why = [*cost.why, Term("members", label, ((label, value, source),), 0.0)]
        rates = rates_of(self.capacities(name))
        floor, clocks = cost.demand.floor, cost.demand.clocks
        if idle > 1:
            body = cost.demand.body(rates)
            clocks = clocks if body <= floor else ((f"{name}.media", 1.0),)
            floor = body * idle
            line = max(cost.why, key=lambda term: term.seconds, default=Term("", "", (), 0.0))  # sets the uncertainty
            numbers = (input_ for input_ in line.inputs if isinstance(input_[2], Origin) and input_[2].plain != WORKLOAD)
            idles = ("idle", f"{idle:.4g}", "members per access in flight")
            inputs = (("body", precise(body, "s"), "all members busy"), idles, *numbers)
            doubts = tuple(doubt._replace(seconds=doubt.seconds * idle) for doubt in line.doubts)
            why.append(Term("accesses", "body x idle", inputs, floor, f"{name}.media", doubts=doubts))
        moved = tuple((capacity, accesses.bytes if unit == "B" else amount, unit) for capacity, amount, unit in cost.moved)
        crowd = cost.demand.crowd and Crowd(f"{name}.media", accesses.own_depth, ArrayMembers(cost.demand.crowd.each, part))
        demand = replace(cost.demand, floor=floor, clocks=clocks, share=accesses.bytes or 1.0, crowd=crowd)
        return replace(cost, demand=demand, moved=moved, why=tuple(why))

    def _models(self) -> tuple[tuple[str, Disk | Hdd | Ssd | Volume | None], ...]:
        return ("hdd", self.hdd), ("ssd", self.ssd), ("disk", self.disk), ("volume", self.volume)

    def _member_share(self, direction: Direction, accesses: StorageAccesses) -> tuple[StorageAccesses, float, float]:
        """Return (accesses of one member, members per access in flight, share of each access at one member).

        The second number is at least 1.
        """
        n, wide = self.members, self.width(direction)
        region = None if accesses.region is None else accesses.region / self.width("write")
        if accesses.access == "sequential":
            return replace(accesses, size=accesses.size / wide, region=region), 1.0, 1.0
        pieces = min(float(wide), max(1.0, accesses.size / self.stripe))  # members of one access
        touched, steps = pieces, 1.0
        written = 0.0
        if direction == "write" and self.level in _PARITIES:
            changed = pieces + _PARITIES[self.level]
            read = min(changed, n / 2)  # or the unchanged rest of the stripe, if that is less
            touched, steps, written = read + changed, 2.0, changed / (read + changed)
        elif direction == "write" and self.level in (1, 10):
            touched = float(n) if self.level == 1 else min(2 * pieces, float(n))
        under_way = (1.0 if accesses.sync else max(1.0, min(accesses.depth, accesses.times))) * touched / steps
        share = replace(
            accesses,
            size=accesses.size / pieces,
            times=accesses.times * touched / n,
            depth=max(1.0, under_way / n),
            region=region,
            written=written,
        )
        return share, max(1.0, n / under_way), touched / steps / n
