"""A small model that is served: the workload with other keys, and what its service says."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import hwsim
from hwsim.api import load_machine
from hwsim.families.serving.results.statistics import ServiceStatistics
from hwsim.machine import Machine

SMALL: Final = {"kind": "transformer", "layers": 4, "hidden": 1024, "heads": 16, "vocab": 8000, "sequence": 8192}


def asked(events: Any = None, **keys: Any) -> dict[str, Any]:
    """The workload."""
    infer = {
        "model": SMALL, "device": "gpu0", "requests": 120, "prompt": {"lognormal": {"median": 300, "sigma": 0.9}},
        "output": {"uniform": [1, 60]}, **keys,
    }  # fmt: skip
    return {"hwsim": "workload/1", "infer": infer, **({"events": events} if events else {})}


@cache
def dgx() -> Machine:
    """Eight GPUs, which many tests use and none changes."""
    return load_machine("dgx-h100")


def served(engine: Any = "auto", machine: str = "", events: Any = None, **keys: Any) -> ServiceStatistics:
    """What the service says."""
    [found] = hwsim.simulate(machine or dgx(), asked(events, **keys), engine=engine, expect=False).serving
    return found
