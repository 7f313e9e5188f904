"""Devices simulated request by request: the oracle of their closed forms, and the thing to watch.

A twin has the four members that `requests` describes.  A new one is a file here and its line in `TWINS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hwsim.actors.request_level.caches import caches_play
from hwsim.actors.request_level.dram import dram_play
from hwsim.actors.request_level.hdd import hdd_play
from hwsim.actors.request_level.load import latency_curve
from hwsim.actors.request_level.play import Players
from hwsim.actors.request_level.requests import (
    MOST_REQUESTS,
    CannotPlay,
    Play,
    Served,
    Twin,
    columns,
    poisson,
    requests_of,
    serve,
    statistics,
)
from hwsim.actors.request_level.ssd import ssd_play
from hwsim.devices import Sockets

# kind of device -> (model, full name) -> its twin; raises CannotPlay where the model does not say enough
TWINS: Final[Mapping[str, Callable[[Any, str], Play]]] = {
    "cpu": lambda cpu, name: caches_play(cpu, name) if cpu.caches else dram_play(cpu.memory.dram, cpu.memory.size, name),
    "gpu": lambda gpu, name: dram_play(gpu.memory.dram, gpu.memory.size, name),
    "hdd": hdd_play,
    "memory": lambda memory, name: dram_play(memory.dram, memory.size, name),
    "ssd": ssd_play,
}


def play_of(kind: str, model: Any, name: str) -> Play:
    """A device ready to be simulated request by request.

    Raises:
        CannotPlay: its kind has no twin, or its file does not say what it is made of.
    """
    if kind not in TWINS:
        raise CannotPlay(
            f"{name} is a {kind}, which is not simulated request by request", f"these are: {', '.join(sorted(TWINS))}"
        )
    if isinstance(model, Sockets):
        sockets = ", ".join(model.names)
        raise CannotPlay(f"{name} is several sockets ({sockets}), and one twin is one socket", "name one of them, in the op too")
    return TWINS[kind](model, name)


__all__ = [
    "MOST_REQUESTS",
    "TWINS",
    "CannotPlay",
    "Play",
    "Players",
    "Served",
    "Twin",
    "columns",
    "latency_curve",
    "play_of",
    "poisson",
    "requests_of",
    "serve",
    "statistics",
]
