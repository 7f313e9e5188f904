"""Many runs put side by side: each point of a study is one call of `hwsim.api.simulate`."""

from __future__ import annotations

from hwsim.study.sweeping import Interrupted, sweep
from hwsim.study.table import Row, Sweep

__all__ = ["Interrupted", "Row", "Sweep", "sweep"]
