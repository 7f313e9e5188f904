"""The memory of a recorded run over time: for each device of each rank, as a simulated run has it."""

from __future__ import annotations

import numpy as np

from hwsim.importers.recording import HOST, Recording
from hwsim.records import dataclass
from hwsim.results.memory import DeviceMemory
from hwsim.ticks import FEMTO


@dataclass(frozen=True, slots=True)
class Timeline:
    """The content of a figure of memory: the length of the run (s), words for its title, and each device."""

    makespan_s: float
    workload: str
    machine: str
    memory: tuple[DeviceMemory, ...]
    settings: tuple[tuple[str, str], ...] = ()


def timeline(recording: Recording) -> Timeline:
    """The memory of a recording; without devices if it has no events of memory."""
    devices, last = [], 0
    for rank in recording.ranks:
        last = max(last, int(rank.slices.end.max(initial=0)))
        if rank.memory is None:
            continue
        which = rank.memory.device
        for device in np.unique(which).tolist():
            rows = which == device
            time = np.maximum(rank.memory.time[rows], 0)
            last = max(last, int(time.max()))
            where = "host" if device == HOST else f"GPU {device}"
            devices.append(DeviceMemory(f"rank {rank.number}, {where}", None, time, rank.memory.held[rows]))
    gpus = sorted({name for rank in recording.ranks for _, name in rank.devices if name})
    return Timeline(last / FEMTO, f"{recording.format} recording", ", ".join(gpus) or "a host", tuple(devices))
