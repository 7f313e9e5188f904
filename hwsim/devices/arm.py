"""The arm of a hard disk: seek time by distance, and on average.

    seek(d) = a + b sqrt(d)  up to `bend` cylinders (acceleration and braking),  c + e d  beyond (constant speed)

Keys: the three figures of a data sheet (track to track, average, full stroke), or the five constants. The curve through the
three figures bends at a third of the cylinders, the distance of the average seek.
Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994.

The geometry of the platters: capacity of a track, transfer rate and size from the densities.

    capacity of a track = 2 pi radius x density,   rate = capacity x rpm / 60,
    size = surfaces x tracks x capacity of the mean track,   tracks = (outer - inner) x track density

Twice the linear density doubles the capacity of a track, the rate and the size; twice the tracks double only the size.
Source: geometry. Range: one density everywhere; `used` covers sector headers, error correction and servo wedges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import LENGTH, SIZE, Metres, Ratio, Seconds

BytesPerMetre = Annotated[float, SIZE / LENGTH]


@dataclass(frozen=True, slots=True)
class Platter:
    """The radii of the outermost and innermost tracks, and the densities of bits and tracks."""

    outer: Metres = field("radius of the outermost track", exclusive_minimum=0.0, example="46 mm")
    inner: Metres = field("radius of the innermost track", exclusive_minimum=0.0, example="21 mm")
    density: BytesPerMetre = field("linear bit density along a track", exclusive_minimum=0.0, example="80 Mb/m")
    tracks: int = field("number of tracks on a surface", default=1, minimum=1)
    surfaces: int = field("number of recording surfaces, two for each platter", default=2, minimum=1)
    used: Ratio = field("share of each track that holds data", default=1.0, exclusive_minimum=0.0, maximum=1.0)

    def track(self, radius: float) -> float:
        """Return the capacity of a track at a radius (B).

        >>> round(Platter(outer=0.046, inner=0.021, density=10e6).track(0.046) / 1e6, 2)  # 80 Mb/m: 2 Mb an inch
        2.89
        """
        return 2 * math.pi * radius * self.density * self.used

    def rate(self, rpm: float) -> float:
        """Return the transfer rate at the outermost track (B/s)."""
        return self.track(self.outer) * rpm / 60.0

    def size(self) -> float:
        """Return the capacity of all surfaces (B)."""
        return self.surfaces * self.tracks * 0.5 * (self.track(self.outer) + self.track(self.inner))


@dataclass(frozen=True, slots=True)
class SeekCurve:
    """A seek curve: a + b sqrt(d) up to `bend` cylinders, c + e d beyond."""

    a: float
    b: float
    c: float
    e: float
    bend: float

    def __call__(self, distance: float) -> float:
        """Return the seek time (s) over a distance in cylinders; 0 for no distance."""
        if distance <= 0:
            return 0.0
        return self.a + self.b * math.sqrt(distance) if distance <= self.bend else self.c + self.e * distance


@dataclass(frozen=True, slots=True)
class RandomSeeks:
    """Seeks between two random cylinders: a share x of the cylinders is the distance with density 2 (1 - x)."""

    curve: SeekCurve
    cylinders: float

    @property
    def mean(self) -> float:
        """Average seek time (s)."""
        curve, width = self.curve, self.cylinders
        if width <= 0:
            return 0.0
        bend = min(1.0, curve.bend / width)
        short = curve.a * (2 * bend - bend**2) + curve.b * math.sqrt(width) * (4 / 3 * bend**1.5 - 4 / 5 * bend**2.5)
        long = curve.c * (1 - bend) ** 2 + curve.e * width * (1 / 3 - bend**2 + 2 / 3 * bend**3)
        return float(max(0.0, short + long))

    def at(self, share: float) -> float:
        """Return the quantile of the seek time (s) at a share of the seeks."""
        return self.curve(self.cylinders * (1.0 - math.sqrt(1.0 - share)))


@dataclass(frozen=True, slots=True)
class HeadPositioning:
    """Positioning times to a random sector: a seek, then a uniformly distributed part of a revolution.

    Args:
        seeks: distribution of the seeks.
        turn: time of one revolution (s).
        settle: extra time of each positioning (s).
    """

    seeks: RandomSeeks
    turn: float
    settle: float = 0.0

    @property
    def mean(self) -> float:
        """Average positioning time (s).

        >>> drive = Seek(cylinders=3000, track=1e-3, average=8e-3, full=16e-3)
        >>> round(HeadPositioning(drive.within(1.0), turn=60 / 7200).mean, 5)
        0.01191
        """
        return self.seeks.mean + 0.5 * self.turn + self.settle

    def at(self, share: float, turned: float) -> float:
        """Return the positioning time (s) at a quantile of the seeks and a part `turned` of a revolution."""
        return self.seeks.at(share) + self.turn * turned + self.settle


@dataclass(frozen=True, slots=True)
class Seek:
    """The keys of a seek curve: track, average and full; or a, b, c, e and bend."""

    cylinders: int = field("number of cylinders (tracks across one surface)", minimum=2)
    track: Seconds | None = field("track-to-track seek time", default=None)
    average: Seconds | None = field("average seek time of random accesses: a seek over a third of the cylinders", default=None)
    full: Seconds | None = field("full-stroke seek time, from the outermost track to the innermost", default=None)
    a: Seconds | None = field("constant a of a short seek over d cylinders: a + b sqrt(d)", default=None)
    b: Seconds | None = field("coefficient b of a short seek over d cylinders: a + b sqrt(d)", default=None)
    c: Seconds | None = field("constant c of a long seek over d cylinders: c + e d", default=None)
    e: Seconds | None = field("coefficient e of a long seek over d cylinders: c + e d", default=None)
    bend: int | None = field("seek distance in cylinders from which a seek is long", default=None, minimum=1)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        three, five = (self.track, self.average, self.full), (self.a, self.b, self.c, self.e, self.bend)
        expected = "expected `track`, `average` and `full`, or `a`, `b`, `c`, `e` and `bend`"
        if any(key is not None for key in three) and any(key is not None for key in five):
            yield "a", f"{expected}, got keys of both", None
        elif None in three and None in five:
            yield "cylinders", f"{expected}, got neither in full", "track: 1 ms, average: 8 ms, full: 16 ms"
        elif not (self.track or 0.0) <= (self.average or 0.0) <= (self.full or 0.0):
            yield "average", "a longer seek takes less time: expected `track` <= `average` <= `full`", None

    def curve(self) -> SeekCurve:
        """Return the seek curve."""
        if self.a is not None and self.b is not None and self.c is not None and self.e is not None and self.bend is not None:
            return SeekCurve(self.a, self.b, self.c, self.e, float(self.bend))
        track, average, full = self.track or 0.0, self.average or 0.0, self.full or 0.0
        cylinders, third = float(self.cylinders), self.cylinders / 3
        e = (full - average) / (cylinders - third)
        if third <= 1:
            return SeekCurve(track, 0.0, full - e * cylinders, e, 1.0)
        b = (average - track) / (math.sqrt(third) - 1.0)
        return SeekCurve(track - b, b, full - e * cylinders, e, third)

    def seconds(self, distance: float) -> float:
        """Return the seek time (s) over a distance in cylinders."""
        return self.curve()(distance)

    def within(self, part: float) -> RandomSeeks:
        """Return the random seeks within a share of the cylinders."""
        return RandomSeeks(self.curve(), part * self.cylinders)
