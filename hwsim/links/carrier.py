"""What every kind of link has, and the bytes that its packets take on the wire.

    wire = message + packets x header,  packets = message / payload rounded up

**Range**: one message alone.  Acknowledgements, retransmissions and flow control are part of `efficiency`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal, final

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Ratio, Seconds

Input = tuple[str, float, str, str]  # (name, value in SI, unit, where it is from)

Protocol = Literal["tcp", "udp", "rdma"]

# Metres per second in glass fibre: two thirds of light in vacuum (ITU-T G.652: a group index of 1.468 at 1550 nm).
IN_FIBRE: Final = 2 / 3 * 299_792_458.0


@dataclass(frozen=True, slots=True)
class Framing:
    """Packets of at most `payload` bytes of a message with `header` bytes around them, none shorter than `least` on the wire."""

    payload: float
    header: float
    least: float = 0.0

    def wire(self, message: float) -> float:
        """Bytes that a message takes.

        >>> Framing(1448, 90).wire(2896), Framing(1448, 90, least=84).wire(1)
        (3076.0, 91.0)
        """
        if message <= 0:
            return 0.0
        packets = math.ceil(message / self.payload)
        return float(max(message + packets * self.header, packets * self.least))

    def share(self) -> float:
        """The part of the wire that carries a long message."""
        return self.payload / (self.payload + self.header)


@dataclass(frozen=True, slots=True)
class Wait:
    """One part of a link's latency.

    Args:
        formula: in the names of the inputs.
        inputs: numbers of the formula with where they are from.
        seconds: what the formula gives.
    """

    formula: str
    inputs: tuple[Input, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Keys of every kind of link.  The defaults are the ideal: no latency, both directions at once, all of the peak.

    A kind with its own law of latency overrides `waits`; routes, closed forms, transfers and derivations use it alone.
    """

    medium: ClassVar[str] = "of the signal: two thirds of light in glass"

    latency: Seconds = field("time of zero bytes", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    two_way: float = field(
        "what both directions at once carry, in multiples of one: 2 if they do not disturb each other",
        default=2.0,
        minimum=1.0,
        maximum=2.0,
        example="1.43",
    )
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be."""
        if self.duplex == "half" and self.two_way < 2:
            yield "two_way", "a half-duplex link carries one direction at a time", "leave out `two_way` or `duplex: half`"

    def distance(self) -> float:
        """Metres of cable; 0 where nobody said."""
        return 0.0

    def speed(self) -> float:
        """Metres per second of a signal in it."""
        return IN_FIBRE

    def waits(self) -> tuple[Wait, ...]:
        """Parts of the time of zero bytes, none of them zero: the latency, then the way of the signal."""
        found = []
        if self.latency > 0:
            found.append(Wait("latency", (("latency", self.latency, "s", self._source("latency")),), self.latency))
        if self.distance() > 0:
            length = "length", self.distance(), "m", self._source("length")
            speed = "speed", self.speed(), "m/s", self.medium
            found.append(Wait("length / speed", (length, speed), self.distance() / self.speed()))
        return tuple(found)

    @final
    def delay(self) -> float:
        """Seconds of zero bytes from one end to the other: the sum of `waits`."""
        return math.fsum(each.seconds for each in self.waits())

    def _source(self, key: str) -> str:
        return self.sources.get(key, "default") if self.sources else "as given"

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (links that frame use it)
        """Packets of a protocol, where the link counts them message by message; None if `carried` is all there is."""
        return None

    def uses(self) -> int:
        """What it takes of the budget of the device at either end."""
        return 1


def beside_bandwidth(
    bandwidth: float | None, given: Mapping[str, bool], hint: str = "leave out one of them"
) -> Iterator[tuple[str, str, str | None]]:
    """(key, message, hint) of keys that a stated bandwidth makes void."""
    for key, stated in given.items():
        if bandwidth is not None and stated:
            yield key, f"{key} has no effect beside a bandwidth", hint


def reached(efficiency: Ratio, source: str | None) -> str:
    """What a derivation says of an efficiency below one."""
    return "" if efficiency >= 1 else f", {efficiency:.4g} of it reached" + (f" ({source})" if source else "")
