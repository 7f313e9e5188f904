"""Services under load, played: requests as small objects that wait in lines and at stations, on a calendar of their own."""

from __future__ import annotations

from hwsim.families.services.actors.play import Play
from hwsim.families.services.actors.running import Running

__all__ = ["Play", "Running"]
