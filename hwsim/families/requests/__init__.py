"""Request-level simulations of devices, which check their closed forms and show single requests.

A request-level simulation implements `requests.RequestSimulation`. A new one needs a module here and a line in `SIMULATIONS`;
`requests.Stream` issues the requests of an op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hwsim.devices import Sockets
from hwsim.families.requests.requests import NoRequestSimulation, RequestDevice
from hwsim.spec.kinds import KindTable

# by kind of device: function of (model, full name) that makes its simulation, or raises CannotPlay if keys are missing
SIMULATIONS: Final = KindTable[Callable[[Any, str], RequestDevice]](
    {
        "cpu": f"{__name__}.caches:cpu_play",
        "gpu": f"{__name__}.dram:gpu_play",
        "hdd": f"{__name__}.hdd:hdd_play",
        "memory": f"{__name__}.dram:memory_play",
        "ssd": f"{__name__}.ssd:ssd_play",
    }
)


def play_of(kind: str, model: Any, name: str) -> RequestDevice:
    """Return the request-level simulation of a device.

    Raises:
        CannotPlay: The kind of device has no simulation, or keys that it needs are missing.
    """
    if kind not in SIMULATIONS:
        raise NoRequestSimulation(
            f"{name} is a {kind}, which has no request-level simulation", f"one of these: {', '.join(sorted(SIMULATIONS))}"
        )
    if isinstance(model, Sockets):
        sockets = ", ".join(model.names)
        raise NoRequestSimulation(f"{name} is several sockets ({sockets}): expected one socket", "name one socket, in the op too")
    return SIMULATIONS[kind](model, name)
