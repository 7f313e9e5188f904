"""Studies: a table of runs over ranges of values. Each point is one call of `hwsim.api.simulate`."""

from __future__ import annotations

from hwsim.study.point import Row
from hwsim.study.sweeping import Interrupted, sweep
from hwsim.study.table import Sweep

__all__ = ["Interrupted", "Row", "Sweep", "sweep"]
