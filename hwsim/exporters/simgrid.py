"""SimGrid: the devices as hosts, the links as links, the ops as activities, and the program in C++ that plays them.

    g++ -O2 play.cpp -o play -lsimgrid && ./play platform.xml ops.txt

A transfer is a communication over the links that it draws from. The shares of its capacities are then max-min as here, with
no latency in the shares: the latency of an op, and whatever else takes no share of anything, is time before its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from hwsim import ticks
from hwsim.demand import Capacity, Demand, by_name, rates_of
from hwsim.exporters.simgrid_program import PROGRAM
from hwsim.exporters.tools import Exported
from hwsim.importers.recording import Left
from hwsim.records import dataclass
from hwsim.ticks import FEMTO
from hwsim.views.trace.run import Run

SPEED: Final = 1e9  # FLOP/s of a host: a second of a device is 1e9
NEAR: Final = 1e-9  # relative; amounts a byte of two transfers that differ by less are equal


class Body(NamedTuple):
    """The part of an op after its own time, for a size of one. kind: c communication, e execution, n neither.

    At: source and target, or a host; amount: bytes, or seconds of it; rate: B/s at most, 0 for any.
    """

    kind: str
    at: tuple[str, ...]
    amount: float
    rate: float


@dataclass(slots=True)
class _Platform:
    """Links and routes as the transfers of a run need them."""

    capacities: dict[str, Capacity]
    latencies: dict[str, float]
    hosts: dict[str, None] = field(default_factory=dict)
    per_byte: dict[str, float] = field(default_factory=dict)  # by capacity
    routes: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    unequal: set[int] = field(default_factory=set)  # costs

    def transfer(self, number: int, demand: Demand, size: float) -> Body:
        """A transfer of `size` bytes over all that it draws from."""
        links = tuple(name for name, amount in demand.amounts if amount > 0)
        for name, amount in demand.amounts:
            first_share = self.per_byte.setdefault(name, amount / size)
            if abs(first_share - amount / size) > NEAR * first_share:
                self.unequal.add(number)
        ends = [ends for name in links if (ends := self.capacities[name].ends)]
        sources, targets = {source for source, _ in ends}, {target for _, target in ends}
        start, stop = (min(side, default="") for side in (sources - targets, targets - sources))
        pair = (start or f"from {number}", stop or f"to {number}")
        extra = 0
        while self.routes.get(pair, links) != links:  # another way between the same two
            extra += 1
            pair = (pair[0], f"{(stop or pair[1]).partition('#')[0]}#{extra}")
        self.routes[pair] = links
        self.hosts |= dict.fromkeys(pair)
        body = max((amount / self.capacities[name].rate for name, amount in demand.amounts), default=0.0)
        return Body("c", pair, size, size / demand.floor if demand.floor > body * (1 + NEAR) else 0.0)

    def xml(self) -> Iterator[str]:
        """The platform."""
        yield '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        yield '<platform version="4.1">\n  <zone id="hwsim" routing="Full">\n'
        yield f'    <host id="time" speed="{SPEED:.17g}f" core="1000000"/>\n'
        for host in self.hosts:
            yield f'    <host id={quoteattr(host)} speed="{SPEED:.17g}f"/>\n'
        split = self._split()
        for name, per_byte in self.per_byte.items():
            if split.get(name, (name, ""))[1] == "_DOWN":
                continue
            link_name, way = split.get(name, (name, ""))
            policy = "SPLITDUPLEX" if way else "SHARED"
            bandwidth, latency = self.capacities[name].rate / per_byte, self.latencies.get(name, 0.0)
            yield (
                f'    <link id={quoteattr(link_name)} bandwidth="{bandwidth:.17g}Bps" latency="{latency:.17g}s" '
                f'sharing_policy="{policy}"/>\n'
            )
        for (source, target), links in self.routes.items():
            yield f'    <route src={quoteattr(source)} dst={quoteattr(target)} symmetrical="NO">\n'
            for link in links:
                link_name, way = split.get(link, (link, ""))
                direction = f' direction="{way[1:]}"' if way else ""
                yield f"      <link_ctn id={quoteattr(link_name)}{direction}/>\n"
            yield "    </route>\n"
        yield "  </zone>\n</platform>\n"

    def _split(self) -> dict[str, tuple[str, str]]:
        """Capacities that are the two directions of one link: its name, and which direction."""
        halves: dict[str, tuple[str, str]] = {}
        ways = {(way.link, way.ends): name for name in self.per_byte if (way := self.capacities[name]).kind == "way"}
        for (link, (source, target)), name in ways.items():
            back = ways.get((link, (target, source)), "")
            if name < back and self._alike(name, back):
                link_name = f"{link}:{source}-{target}"
                halves[name], halves[back] = (link_name, "_UP"), (link_name, "_DOWN")
        return halves

    def _alike(self, first: str, second: str) -> bool:
        bandwidths = [self.capacities[name].rate / self.per_byte[name] for name in (first, second)]
        return abs(bandwidths[0] - bandwidths[1]) <= NEAR * bandwidths[0]


def files(run: Run) -> Exported:
    """The platform, the ops, and the program."""
    writing = _Writing(run)
    ops = list(writing.ops())
    return Exported(
        {
            "platform.xml": ["".join(writing.platform.xml()).encode()],
            "ops.txt": [(line + "\n").encode() for line in ops],
            "play.cpp": [PROGRAM.encode()],
        },
        writing.unsaid(),
    )


class _Writing:
    def __init__(self, run: Run) -> None:
        self.run, self.flat = run, run.result.timeline.flat
        graph = self.flat.graph
        machine = run.result.built
        latencies = {link.capacity: link.latency for link in machine.links} if machine is not None else {}
        self.rates = rates_of(graph.capacities)
        self.platform = _Platform(by_name(graph.capacities), latencies)
        self.used = set(self.flat.cost.tolist())
        self.bodies = [self._body(number, cost.demand) for number, cost in enumerate(graph.costs)]

    def _body(self, number: int, demand: Demand) -> Body:
        """The main part of a cost."""
        known = self.platform.capacities
        body = demand.body(self.rates)
        if number not in self.used or body <= 0:
            return Body("n", (), 0.0, 0.0)
        links = [known[name] for name, _ in demand.amounts if known[name].kind in ("way", "both")]
        if _is_way(links):
            natural = self.flat.graph.costs[number].moved
            moved = max((amount for name, amount, unit in natural if unit == "B" and known[name].kind == "way"), default=0.0)
            if moved > 0:
                return self.platform.transfer(number, demand, moved)
        drawn = max(demand.amounts, key=lambda entry: entry[1] / self.rates[entry[0]], default=("", 0.0))
        if not links and drawn[0] and self.rates[drawn[0]] == 1 and drawn[1] >= body * (1 - NEAR):
            self.platform.hosts[drawn[0]] = None
            return Body("e", (drawn[0],), drawn[1], 0.0)
        return Body("n", (), body, 0.0)

    def ops(self) -> Iterator[str]:
        """A line for each op, then one for each op that waits for another."""
        yield "# hwsim simgrid/1: n ID SECONDS | e ID SECONDS HOST FLOP | c ID SECONDS SOURCE TARGET BYTES RATE | d BEFORE THEN"
        flat = self.flat
        costs = flat.graph.costs
        columns = (flat.cost.tolist(), flat.size.tolist(), flat.time.tolist())
        for op, (cost, size, fixed) in enumerate(zip(*columns, strict=True)):
            body = self.bodies[cost] if cost >= 0 else Body("n", (), 0.0, 0.0)
            seconds = fixed / FEMTO + (costs[cost].demand.latency if cost >= 0 else 0.0)
            if body.kind == "c":
                places = " ".join(_word(entry) for entry in body.at)
                yield f"c {op} {seconds:.17g} {places} {body.amount * size:.17g} {body.rate:.17g}"
            elif body.kind == "e":
                yield f"e {op} {seconds:.17g} {_word(body.at[0])} {body.amount * size * SPEED:.17g}"
            else:
                yield f"n {op} {seconds + body.amount * size:.17g}"
        for before, then in zip(*(entry.tolist() for entry in flat.edges()), strict=True):
            yield f"d {before} {then}"

    def unsaid(self) -> tuple[Left, ...]:
        """Facts of the run that SimGrid's hosts and links cannot express."""
        flat, left = self.flat, []
        length = self.run.result.timeline.end - self.run.result.timeline.start
        of = {
            "unequal": "of transfers that draw more or less for each byte than the first on the same link, whose share is taken",
            "alone": "exchanges and other work on several capacities at once: as long as alone, whatever runs beside",
            "beside": "drawn by executions beside the capacity that limits them: another execution does not feel it",
            "held": "fractions of a device that transfers hold while they run",
        }
        costs = flat.graph.costs
        several = [body.kind == "n" and len(cost.demand.amounts) > 0 for body, cost in zip(self.bodies, costs, strict=True)]
        beside = [body.kind == "e" and len(cost.demand.amounts) > 1 for body, cost in zip(self.bodies, costs, strict=True)]
        held = [bool(cost.demand.holds) for cost in costs]
        unequal = [number in self.platform.unequal for number in range(len(costs))]
        for key, chosen in (("unequal", unequal), ("alone", several), ("beside", beside), ("held", held)):
            ops = np.array([*chosen, False], np.bool_)[flat.cost]
            if ops.any():
                left.append(Left(f"ops ({key})", int(ops.sum()), ticks.total(length[ops]), of[key]))
        return tuple(left)


def _is_way(links: Sequence[Capacity]) -> bool:
    """Whether links lead from one place to another as the links of a transfer do, each in its direction alone."""
    sources, targets = ({each.ends[side] for each in links if each.kind == "way"} for side in (0, 1))
    return len(sources - targets) == len(targets - sources) == 1 and len(sources) == len(targets) == len(links)


def _word(name: str) -> str:
    """A name without spaces, as the program reads them."""
    return name.replace(" ", "%20")
