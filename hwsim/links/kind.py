"""Base of every kind of link, and the bytes that its packets take on the wire.

    wire = message + packets x header,  packets = message / payload rounded up

**Range**: one message alone. Acknowledgements, retransmissions and flow control are part of `efficiency`.
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
Keys = Mapping[str, object]  # keys of a link as a file writes them
Joins = Literal["host", "gpus", "sockets", "lan", "fabric", "anything"]
Colour = Literal["blue", "orange", "green", "purple", "sky", "red", "yellow", "black"]
Protocol = Literal["tcp", "udp", "rdma"]

LIGHT: Final = 299_792_458.0  # m/s in vacuum
IN_FIBRE: Final = 2 / 3 * LIGHT  # m/s in glass (ITU-T G.652: a group index of 1.468 at 1550 nm)


@dataclass(frozen=True, slots=True)
class Framing:
    """Packets of at most `payload` bytes of a message with `header` bytes around them, none shorter than `least` on the wire."""

    payload: float
    header: float
    least: float = 0.0

    def wire(self, message: float) -> float:
        """Bytes on the wire of a message.

        >>> Framing(1448, 90).wire(2896), Framing(1448, 90, least=84).wire(1)
        (3076.0, 91.0)
        """
        if message <= 0:
            return 0.0
        packets = math.ceil(message / self.payload)
        return float(max(message + packets * self.header, packets * self.least))

    def share(self) -> float:
        """Payload as a share of the wire bytes of a long message."""
        return self.payload / (self.payload + self.header)


@dataclass(frozen=True, slots=True)
class Wait:
    """One part of a link's latency.

    Args:
        formula: in the names of the inputs.
        inputs: numbers of the formula with their sources.
        seconds: result of the formula.
    """

    formula: str
    inputs: tuple[Input, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """Keys of every kind of link. The defaults are the ideal: no latency, both directions at once, all of the peak.

    A kind defines `peak`, and overrides the rest where its law differs. A kind with its own law of latency overrides `waits`;
    routes, closed forms, transfers and derivations use it alone.

    Class attributes:
        kind, called, short: name in files, in text, in the topology matrix.
        joins: what it usually joins. network: leads out of a computer.
        budget: key of a device that says how many of it the device has. trains: key of a device that says its generation.
        colour: in figures.
        examples: values of its keys.
    """

    kind: ClassVar[str]
    called: ClassVar[str]
    short: ClassVar[str]
    joins: ClassVar[Joins]
    network: ClassVar[bool] = False
    budget: ClassVar[str] = ""
    trains: ClassVar[str] = ""
    colour: ClassVar[Colour] = "black"
    medium: ClassVar[str] = "of the signal: two thirds of light in glass"
    examples: ClassVar[tuple[Keys, ...]]

    latency: Seconds = field("time of zero bytes", default=0.0)
    duplex: Literal["full", "half"] = field("half: both directions share the bandwidth", default="full")
    two_way: float = field(
        "what both directions at once carry, in multiples of one: 2 if they do not disturb each other",
        default=2.0,
        minimum=1.0,
        maximum=2.0,
        example="1.43",
    )
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)

    def problems(self) -> Iterator[Problem]:
        """Values that contradict each other."""
        if self.duplex == "half" and self.two_way < 2:
            yield "two_way", "a half-duplex link carries one direction at a time", "leave out `two_way` or `duplex: half`"

    def peak(self) -> float:
        """Bytes per second on the wire in each direction."""
        raise NotImplementedError

    def carried(self) -> float:
        """Bytes per second in each direction that are reached; where there is a `framing`, wire bytes."""
        return self.peak()

    def formula(self) -> Cited:
        """Derivation of `carried`, in words."""
        return "bandwidth as given"

    def origin(self, count: int = 1) -> Cited:
        """Source of the bandwidth of `count` parallel links: the file's number, or the standard's and the file's lanes."""
        stated = self.sources.get("bandwidth") or self.sources.get("rate")
        if stated is not None and self.carried() == self.peak():
            return stated + (f", {count} side by side" if count > 1 else "")
        return self.formula() + (f", {count} times" if count > 1 else "")

    def label(self) -> str:
        """The kind with its generation, width or rate."""
        return self.called

    def fetched(self) -> Ratio:
        """Share of `carried` that a device reaches which reads the memory at the other end."""
        return 1.0

    def distance(self) -> float:
        """Metres of cable; 0 if not given."""
        return 0.0

    def speed(self) -> float:
        """Metres per second of a signal in the medium."""
        return IN_FIBRE

    def waits(self) -> tuple[Wait, ...]:
        """Parts of the time of zero bytes, none of them zero: the latency, then the propagation delay."""
        waits = []
        if self.latency > 0:
            waits.append(Wait("latency", (("latency", self.latency, "s", self._source("latency")),), self.latency))
        if self.distance() > 0:
            length = "length", self.distance(), "m", self._source("length")
            speed = "speed", self.speed(), "m/s", self.medium
            waits.append(Wait("length / speed", (length, speed), self.distance() / self.speed()))
        return tuple(waits)

    @final
    def delay(self) -> float:
        """Seconds of zero bytes from one end to the other: the sum of `waits`."""
        return math.fsum(wait.seconds for wait in self.waits())

    def _source(self, key: str) -> Origin:
        return self.sources.get(key, IDEAL) if self.sources else GIVEN

    def framing(self, protocol: Protocol | None = None) -> Framing | None:  # noqa: ARG002 (links that frame use it)
        """Packets of a protocol, if the link counts them message by message; else None."""
        return None

    def generation(self) -> int:
        """The generation that sets its rate; 0 if none does."""
        return 0

    def at(self, generation: int) -> LinkKind:
        """The same at another generation, where one sets the rate."""
        raise NotImplementedError

    def uses(self) -> int:
        """Number of its `budget` that it takes of the device at either end."""
        return 1

    def reached(self, formula: str, efficiency: Ratio) -> Cited:
        """A formula with an efficiency below one."""
        if efficiency >= 1:
            return formula
        source = self.sources.get("efficiency")
        return f"{formula}, {efficiency:.4g} of it reached" + ("" if source is None else " (" + source + ")")


def void_keys(bandwidth: float | None, stated: Mapping[str, bool]) -> Iterator[Problem]:
    """Keys that have no effect because a bandwidth is stated, too."""
    for key, is_stated in stated.items():
        if bandwidth is not None and is_stated:
            name = "the generation" if key == "gen" else key
            hint = "leave out one of them" if key == "gen" else "a bandwidth is what is carried"
            yield key, f"{name} has no effect beside a bandwidth", hint
