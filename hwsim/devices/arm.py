"""The arm of a hard disk: how long it takes from one track to another, and on average.

    seek(d) = a + b sqrt(d)  up to `bend` cylinders (the arm speeds up and brakes),  c + e d  beyond (it coasts)

Keys: the three figures of a data sheet (track to track, average, full stroke), or the five constants themselves. The curve
through three figures has its bend at a third of the cylinders, where the average lies.
Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27(3), 1994.

The geometry of a hard disk's platters: from densities to the capacity of a track, the rate and the size.

    capacity of a track = 2 pi radius x density,   rate = capacity x rpm / 60,
    size = surfaces x tracks x capacity of the mean track,   tracks = (outer - inner) x track density

Twice the bits along a track double its capacity, the rate and the size; twice the tracks double the size alone.
Source: geometry. Range: one density everywhere; sector headers, error correction and servo wedges are in `used`.
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
    """Radii of the outermost and innermost track, and how densely bits and tracks lie."""

    outer: Metres = field("radius of the outermost track", exclusive_minimum=0.0, example="46 mm")
    inner: Metres = field("radius of the innermost track", exclusive_minimum=0.0, example="21 mm")
    density: BytesPerMetre = field("linear bit density along a track", exclusive_minimum=0.0, example="80 Mb/m")
    tracks: int = field("number of tracks on a surface", default=1, minimum=1)
    surfaces: int = field("number of recording surfaces, two for each platter", default=2, minimum=1)
    used: Ratio = field("share of a track that contains data", default=1.0, exclusive_minimum=0.0, maximum=1.0)

    def track(self, radius: float) -> float:
        """Bytes of the track at a radius.

        >>> round(Platter(outer=0.046, inner=0.021, density=10e6).track(0.046) / 1e6, 2)  # 80 Mb/m: 2 Mb an inch
        2.89
        """
        return 2 * math.pi * radius * self.density * self.used

    def rate(self, rpm: float) -> float:
        """Bytes a second at the outermost track."""
        return self.track(self.outer) * rpm / 60.0

    def size(self) -> float:
        """Bytes of all surfaces."""
        return self.surfaces * self.tracks * 0.5 * (self.track(self.outer) + self.track(self.inner))


@dataclass(frozen=True, slots=True)
class Curve:
    """a + b sqrt(d) up to `bend` cylinders, c + e d beyond."""

    a: float
    b: float
    c: float
    e: float
    bend: float

    def __call__(self, distance: float) -> float:
        """Seconds over a number of cylinders; 0 over none."""
        if distance <= 0:
            return 0.0
        return self.a + self.b * math.sqrt(distance) if distance <= self.bend else self.c + self.e * distance


@dataclass(frozen=True, slots=True)
class Distances:
    """Seeks between two random places on a number of cylinders: a part x of them has the density 2 (1 - x)."""

    curve: Curve
    cylinders: float

    @property
    def mean(self) -> float:
        """Seconds."""
        curve, width = self.curve, self.cylinders
        if width <= 0:
            return 0.0
        at = min(1.0, curve.bend / width)
        short = curve.a * (2 * at - at**2) + curve.b * math.sqrt(width) * (4 / 3 * at**1.5 - 4 / 5 * at**2.5)
        long = curve.c * (1 - at) ** 2 + curve.e * width * (1 / 3 - at**2 + 2 / 3 * at**3)
        return float(max(0.0, short + long))

    def at(self, share: float) -> float:
        """Seconds that this share of the seeks is below."""
        return self.curve(self.cylinders * (1.0 - math.sqrt(1.0 - share)))


@dataclass(frozen=True, slots=True)
class Reach:
    """Ways to a random sector: a seek, then a part of a turn, any as likely.

    turn: seconds of a whole one. settle: seconds that each takes besides.
    """

    seeks: Distances
    turn: float
    settle: float = 0.0

    @property
    def mean(self) -> float:
        """Seconds.

        >>> drive = Seek(cylinders=3000, track=1e-3, average=8e-3, full=16e-3)
        >>> round(Reach(drive.within(1.0), turn=60 / 7200).mean, 5)
        0.01191
        """
        return self.seeks.mean + 0.5 * self.turn + self.settle

    def at(self, share: float, turned: float) -> float:
        """Seconds of one, by the share of the seeks that are shorter, and the part of a turn."""
        return self.seeks.at(share) + self.turn * turned + self.settle


@dataclass(frozen=True, slots=True)
class Seek:
    """Track, average and full, or a, b, c, e and bend."""

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
        """(key, message, hint) of what cannot be."""
        three, five = (self.track, self.average, self.full), (self.a, self.b, self.c, self.e, self.bend)
        expected = "expected `track`, `average` and `full`, or `a`, `b`, `c`, `e` and `bend`"
        if any(key is not None for key in three) and any(key is not None for key in five):
            yield "a", f"{expected}, got keys of both", None
        elif None in three and None in five:
            yield "cylinders", f"{expected}, got neither in full", "track: 1 ms, average: 8 ms, full: 16 ms"
        elif not (self.track or 0.0) <= (self.average or 0.0) <= (self.full or 0.0):
            yield "average", "a longer seek takes less time: expected `track` <= `average` <= `full`", None

    def curve(self) -> Curve:
        """The curve through what is given."""
        if self.a is not None and self.b is not None and self.c is not None and self.e is not None and self.bend is not None:
            return Curve(self.a, self.b, self.c, self.e, float(self.bend))
        track, average, full = self.track or 0.0, self.average or 0.0, self.full or 0.0
        cylinders, third = float(self.cylinders), self.cylinders / 3
        e = (full - average) / (cylinders - third)
        if third <= 1:
            return Curve(track, 0.0, full - e * cylinders, e, 1.0)
        b = (average - track) / (math.sqrt(third) - 1.0)
        return Curve(track - b, b, full - e * cylinders, e, third)

    def seconds(self, distance: float) -> float:
        """Over a distance in cylinders."""
        return self.curve()(distance)

    def within(self, part: float) -> Distances:
        """The curve over a part of the cylinders."""
        return Distances(self.curve(), part * self.cylinders)
