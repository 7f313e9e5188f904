"""Base class of all kinds of links, and the number of bytes that packets take on the wire.

    bytes on the wire = message + packets x header,  packets = ceil(message / payload)

**Range**: a single message. Acknowledgements, retransmissions and flow control are part of `efficiency`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Literal, final

from hwsim.origins import GIVEN, IDEAL, Cited, Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Ratio, Seconds

Input = tuple[str, float, str, Cited]  # (name, value in SI, unit, source)
Keys = Mapping[str, object]  # keys and values of a link in a file
Joins = Literal["host", "gpus", "sockets", "lan", "fabric", "anything"]
Colour = Literal["blue", "orange", "green", "purple", "sky", "red", "yellow", "black"]
Protocol = Literal["tcp", "udp", "rdma"]

LIGHT: Final = 299_792_458.0  # m/s in vacuum
IN_FIBRE: Final = 2 / 3 * LIGHT  # m/s in glass (ITU-T G.652: group index 1.468 at 1550 nm)


@dataclass(frozen=True, slots=True)
class Framing:
    """A division of messages into packets.

    Args:
        payload: maximum message bytes per packet.
        header: header and trailer bytes per packet.
        least: minimum bytes of a packet on the wire.
    """

    payload: float
    header: float
    least: float = 0.0

    def wire(self, message: float) -> float:
        """Return the bytes that a message takes on the wire.

        >>> Framing(1448, 90).wire(2896), Framing(1448, 90, least=84).wire(1)
        (3076.0, 91.0)
        """
        if message <= 0:
            return 0.0
        packets = math.ceil(message / self.payload)
        return float(max(message + packets * self.header, packets * self.least))

    def share(self) -> float:
        """Return the share of payload in the bytes on the wire of a long message."""
        return self.payload / (self.payload + self.header)


@dataclass(frozen=True, slots=True)
class LatencyPart:
    """A part of a link's latency.

    Args:
        formula: expression in the names of the inputs.
        inputs: values of these names, with units and sources.
        seconds: result of the formula.
    """

    formula: str
    inputs: tuple[Input, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """A base of all kinds of links, with their common keys. The defaults describe an ideal link.

    A kind defines `peak` and overrides the other methods where it differs. A kind with another latency formula overrides `waits`,
    from which routes, estimates, transfers and derivations take the latency.

    Class attributes:
        kind: name in files.
        called: name in text.
        short: name in the topology matrix.
        joins: devices that it usually connects.
        network: whether it leaves the node.
        budget: key of a device that states how many such links (or lanes) the device has.
        trains: key of a device that states its generation of this link.
        colour: colour in figures.
        medium: source of the propagation speed, for derivations.
        examples: example values of its keys.
    """

    kind: ClassVar[str]
    called: ClassVar[str]
    short: ClassVar[str]
    joins: ClassVar[Joins]
    network: ClassVar[bool] = False
    budget: ClassVar[str] = ""
    trains: ClassVar[str] = ""
    colour: ClassVar[Colour] = "black"
    medium: ClassVar[str] = "of the signal: 2/3 of the speed of light, in glass"
    examples: ClassVar[tuple[Keys, ...]]

    latency: Seconds = field("latency of the link: time of a zero-byte message", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    two_way: float = field(
        "total bandwidth of both directions at once, relative to the bandwidth of one; 2: full duplex",
        default=2.0,
        minimum=1.0,
        maximum=2.0,
        example="1.43",
    )
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each pair of contradicting values."""
        if self.duplex == "half" and self.two_way < 2:
            yield "two_way", "`two_way` has no effect on a half-duplex link", "omit `two_way` or `duplex: half`"

    def peak(self) -> float:
        """Return the peak bandwidth of each direction (bytes/s on the wire)."""
        raise NotImplementedError

    def carried(self) -> float:
        """Return the achievable bandwidth of each direction (bytes/s; on the wire if there is a `framing`, else of payload)."""
        return self.peak()

    def formula(self) -> Cited:
        """Return the derivation of `carried` in words."""
        return "stated bandwidth"

    def origin(self, count: int = 1) -> Cited:
        """Return the source of the bandwidth of `count` parallel links: the stated number, or the standard and the lanes."""
        stated = self.sources.get("bandwidth") or self.sources.get("rate")
        if stated is not None and self.carried() == self.peak():
            return stated + (f", {count} in parallel" if count > 1 else "")
        return self.formula() + (f", {count} times" if count > 1 else "")

    def label(self) -> str:
        """Return the name of the kind with its generation, width or rate."""
        return self.called

    def fetched(self) -> Ratio:
        """Return the fraction of `carried` that a device reaches when it reads memory at the other end."""
        return 1.0

    def distance(self) -> float:
        """Return the length of the cable (m); 0 if unknown."""
        return 0.0

    def speed(self) -> float:
        """Return the propagation speed of the signal (m/s)."""
        return IN_FIBRE

    def waits(self) -> tuple[LatencyPart, ...]:
        """Return the nonzero parts of the latency: the stated latency, then the propagation delay."""
        waits = []
        if self.latency > 0:
            waits.append(LatencyPart("latency", (("latency", self.latency, "s", self._source("latency")),), self.latency))
        if self.distance() > 0:
            length = "length", self.distance(), "m", self._source("length")
            speed = "speed", self.speed(), "m/s", self.medium
            waits.append(LatencyPart("length / speed", (length, speed), self.distance() / self.speed()))
        return tuple(waits)

    @final
    def delay(self) -> float:
        """Return the latency from one end to the other (s): the sum of `waits`."""
        return math.fsum(wait.seconds for wait in self.waits())

    def _source(self, key: str) -> Origin:
        return self.sources.get(key, IDEAL) if self.sources else GIVEN

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (overridden by links with packets)
        """Return the packets of a protocol, if the link counts packets per message; else None."""
        return None

    def generation(self) -> int:
        """Return the generation that sets the rate; 0 if there is none."""
        return 0

    def at(self, generation: int) -> LinkKind:
        """Return a copy at another generation, for kinds whose rate depends on one."""
        raise NotImplementedError

    def uses(self) -> int:
        """Return how many of `budget` the link uses on the device at each end."""
        return 1

    def reached(self, formula: str, efficiency: Ratio) -> Cited:
        """Return a derivation with an efficiency below one appended."""
        if efficiency >= 1:
            return formula
        source = self.sources.get("efficiency")
        return f"{formula}, efficiency {efficiency:.4g}" + ("" if source is None else " (" + source + ")")


def ineffective_keys(bandwidth: float | None, stated: Mapping[str, bool]) -> Iterator[Problem]:
    """Yield (key, message, hint) for each key that has no effect because `bandwidth` is stated."""
    for key, is_stated in stated.items():
        if bandwidth is not None and is_stated:
            yield key, f"`{key}` has no effect if `bandwidth` is stated", f"omit `{key}` or `bandwidth`"
