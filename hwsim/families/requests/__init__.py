"""Devices simulated request by request: the oracle of their closed forms, and the thing to watch.

A request-level simulation has the four members that `requests` describes. A new one is a file here and a line in `SIMULATIONS`;
`requests.Stream` issues the requests of an op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hwsim.devices import Sockets
from hwsim.families.requests.requests import CannotPlay, Play
from hwsim.spec.kinds import Kinds

# kind of device: function of (model, full name) that makes its simulation; raises CannotPlay if the model does not say enough
SIMULATIONS: Final = Kinds[Callable[[Any, str], Play]](
    {
        "cpu": f"{__name__}.caches:cpu_play",
        "gpu": f"{__name__}.dram:gpu_play",
        "hdd": f"{__name__}.hdd:hdd_play",
        "memory": f"{__name__}.dram:memory_play",
        "ssd": f"{__name__}.ssd:ssd_play",
    }
)


def play_of(kind: str, model: Any, name: str) -> Play:
    """A device ready to be simulated request by request.

    Raises:
        CannotPlay: its kind has no simulation, or its file does not say what it is made of.
    """
    if kind not in SIMULATIONS:
        raise CannotPlay(
            f"{name} is a {kind}, which is not simulated request by request", f"these are: {', '.join(sorted(SIMULATIONS))}"
        )
    if isinstance(model, Sockets):
        sockets = ", ".join(model.names)
        raise CannotPlay(f"{name} is several sockets ({sockets}), and one twin is one socket", "name one of them, in the op too")
    return SIMULATIONS[kind](model, name)
