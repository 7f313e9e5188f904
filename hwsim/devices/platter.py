"""The geometry of a hard disk's platters: from densities to the capacity of a track, the rate and the size.

    capacity of a track = 2 pi radius x density,   rate = capacity x rpm / 60,
    size = surfaces x tracks x capacity of the mean track,   tracks = (outer - inner) x track density

Twice the bits along a track double its capacity, the rate and the size; twice the tracks double the size alone.
Source: geometry.  Range: one density everywhere; sector headers, error correction and servo wedges are in `used`.
"""

from __future__ import annotations

import math
from typing import Annotated

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import LENGTH, SIZE, Metres, Ratio

BytesPerMetre = Annotated[float, SIZE / LENGTH]


@dataclass(frozen=True, slots=True)
class Platter:
    """Radii of the outermost and innermost track, and how densely bits and tracks lie."""

    outer: Metres = field("radius of the outermost track", exclusive_minimum=0.0, example="46 mm")
    inner: Metres = field("radius of the innermost track", exclusive_minimum=0.0, example="21 mm")
    density: BytesPerMetre = field("bits along a track", exclusive_minimum=0.0, example="80 Mb/m")
    tracks: int = field("tracks of one surface", default=1, minimum=1)
    surfaces: int = field("two for each platter", default=2, minimum=1)
    used: Ratio = field("part of a track that holds data", default=1.0, exclusive_minimum=0.0, maximum=1.0)

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
