"""What every transfer between two devices has in common, whatever its size: the way, what a byte draws on it, the latencies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hwsim.demand import Term
from hwsim.devices.roofline import WORKLOAD
from hwsim.links import Framing, Protocol
from hwsim.machine.placed import Link
from hwsim.records import dataclass
from hwsim.units import precise


@dataclass(frozen=True, slots=True)
class Draw:
    """Per byte: `amount` of a capacity, and the seconds a derivation shows; `parts` devices share the bytes.

    part: of the bytes, what comes here; the rest takes other ways.
    framing: of the packets that are counted here, where the bytes on the wire are more than those moved.
    """

    capacity: str
    amount: float
    seconds: float
    label: str
    rate: tuple[str, str, str]
    parts: int = 1
    framing: Framing | None = None
    inner: tuple[str, str, str] | None = None  # what a copy inside a memory reaches of it
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Path:
    """What every transfer between two devices has in common."""

    stops: tuple[str, ...]
    links: tuple[Link, ...]
    draws: tuple[Draw, ...]
    latencies: tuple[Term, ...]
    protocol: Protocol | None

    def per_byte(self) -> tuple[PerByte, ...]:
        """Sorted by capacity; a copy in place passes its memory twice."""
        found: dict[str, PerByte] = {}
        for draw in self.draws:
            before = found.get(draw.capacity)
            amount, times = (before.amount, before.times) if before is not None else (0.0, 0.0)
            found[draw.capacity] = PerByte(draw.capacity, amount + draw.part * draw.amount, times + draw.part, draw.framing)
        return tuple(found[name] for name in sorted(found))

    def lines(self) -> tuple[Line, ...]:
        """What the derivation says of each capacity, in the order of the way."""
        found: dict[str, list[Draw]] = {}
        for draw in self.draws:
            found.setdefault(draw.capacity, []).append(draw)
        return tuple(_line(draws) for draws in found.values())


@dataclass(frozen=True, slots=True)
class PerByte:
    """What one byte on the wire draws of a capacity, and how often it passes it."""

    capacity: str
    amount: float
    times: float
    framing: Framing | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the derivation without the bytes: seconds per byte on the wire."""

    label: str
    formula: str
    inputs: tuple[tuple[str, str, str], ...]
    seconds: float
    capacity: str
    framing: Framing | None

    def term(self, size: float, messages: float) -> Term:
        """The line with the bytes put in."""
        if self.framing is None:
            return Term(
                self.label,
                self.formula,
                (("bytes", precise(size, "B"), WORKLOAD), *self.inputs),
                self.seconds * size,
                self.capacity,
            )
        wire = on_wire(self.framing, size, messages)
        packets = f"packets of {self.framing.payload:g} B with {self.framing.header:.4g} B around each"
        many = f" of {messages:g} messages" if messages != 1 else ""
        told = ("wire", precise(wire, "B"), f"{precise(size, 'B')}{many} in {packets}")
        return Term(self.label, self.formula.replace("bytes", "wire"), (told, *self.inputs), self.seconds * wire, self.capacity)


def on_wire(framing: Framing | None, size: float, messages: float) -> float:
    """Bytes on the wire of a size in equal messages."""
    return size if framing is None else messages * framing.wire(size / messages)


def _line(draws: Sequence[Draw]) -> Line:
    """Of all that one byte draws of a capacity: a copy in place reads its memory and writes it."""
    first, inputs = draws[0], [draws[0].rate]
    above, below = "bytes", "bandwidth"
    if len(draws) > 1:
        above, inputs = "passes x bytes", [("passes", str(len(draws)), "it is read and written"), *inputs]
    part = math.fsum(draw.part for draw in draws) / len(draws)
    if part < 1:
        above, inputs = f"part x {above}", [("part", precise(part, "1"), "of the bytes: the rest takes other ways"), *inputs]
    if first.parts > 1:
        below, inputs = "(sockets x bandwidth)", [*inputs, ("sockets", str(first.parts), "each takes an equal part")]
    elif first.inner is not None:
        below, inputs = f"({first.inner[0]} x bandwidth)", [*inputs, first.inner]
    seconds = math.fsum(draw.part * draw.seconds for draw in draws)
    return Line(first.label, f"{above} / {below}", tuple(inputs), seconds, first.capacity, first.framing)


@dataclass(frozen=True, slots=True)
class Known:
    """A path, and what of its costs does not depend on the size."""

    path: Path
    per_byte: tuple[PerByte, ...]
    lines: tuple[Line, ...]
    latency: float
    passes: float  # share per byte
