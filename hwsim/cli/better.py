"""A run again, its machine and workload read and prepared anew, with one part of the machine twice as fast."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from hwsim import api
from hwsim.devices import Gpu
from hwsim.machine import Machine
from hwsim.results.timeline import Timeline
from hwsim.spec import SpecError

_NUMBERED: Final = re.compile(r"\d+(?=$|\.)")


def better(machine: str, workload: str, settings: Mapping[str, object], capacity: str) -> Timeline | None:
    """The run with this capacity of a GPU, and of all others of its part, twice as fast; None if no path leads there."""
    if "-" in (machine, workload) or not capacity.endswith((".compute", ".memory")):  # "-": can be read only once
        return None
    try:
        more = _paths(api.prepare(machine, workload, set=settings).machine, capacity)
        return api.simulate(machine, workload, set={**settings, **more}, expect=False).timeline if more else None
    except api.ExpectationFailed as failed:
        return failed.run.timeline
    except SpecError:
        return None


def _paths(machine: Machine, capacity: str) -> dict[str, str]:
    """What has to be set for it."""
    device, _, what = capacity.rpartition(".")
    model = machine.device(device).model if device in machine.devices else None
    if not isinstance(model, Gpu):
        return {}
    part = f"machine.{_NUMBERED.sub('', device)}"
    if what == "memory":
        return {f"{part}.memory.bandwidth": f"{2 * model.memory.bandwidth!r} B/s"}
    peaks = {"flop": model.flop, "vector": model.vector}
    return {f"{part}.{key}.{dtype}": f"{2 * rate!r} FLOP/s" for key, rates in peaks.items() for dtype, rate in rates.items()}
