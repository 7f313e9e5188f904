"""The part `cpu` of a fitted machine: its kernels, and for every op that is none of them the numbers of the plain formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hwsim.calibration.fit.gpu import reached
from hwsim.calibration.fit.kernels import FittedKernels
from hwsim.calibration.fit.writing import kernels_block, quantity
from hwsim.calibration.store import Measurements
from hwsim.devices.calls import elementwise_call
from hwsim.devices.kernels import Kernels

LARGE: Final = 1 << 25  # elements of the addition that memory's bandwidth is told from: 768 MiB together


def cpu_part(fitted: FittedKernels, measurements: Measurements, ref: str) -> dict[str, Any]:
    """All keys of the part."""
    kernels, cpu = fitted.kernels, measurements.environment.get("cpu", {})
    cores = int(cpu.get("usable", 1)) if isinstance(cpu, Mapping) else 1
    one = bandwidth(kernels)
    found: dict[str, Any] = {
        "kind": "cpu",
        "name": str(cpu.get("model", "")) if isinstance(cpu, Mapping) else "",
        "source": "measured",
        "ref": ref,
        "cores": cores,
    }
    if kernels.products:
        found["flop"] = {
            dtype: {
                "value": quantity(time.flop * cores, "FLOP/s"),
                "source": "measured",
                "ref": "large products on one core, times cores",
            }
            for dtype, time in kernels.products.items()
        }
    else:
        found["flop"] = {"fp64": {"value": "1 GFLOP/s", "source": "guess", "ref": "no product was measured"}}
    if "normal" in kernels.functions and kernels.functions["normal"].each:
        found["random"] = quantity(1.0 / max(kernels.functions["normal"].each.values()), "1/s")
    found["core_bandwidth"] = quantity(one, "B/s")
    most = max(one, reached(measurements))
    found["memory"] = {
        "bandwidth": quantity(most, "B/s"),
        "ref": "reached by one core, or by copies to a GPU: all cores together may have more",
    }
    sizes = {level: tier.beyond for level, tier in kernels.levels.items()}
    names = {"L2": "L1", "L3": "L2", "memory": "L3"}
    found["caches"] = {"levels": {names[level]: {"size": quantity(size, "B")} for level, size in sizes.items() if level in names}}
    found["kernels"] = kernels_block(fitted)
    return found


def bandwidth(kernels: Kernels) -> float:
    """Bytes per second of one core in an addition of large arrays, as the table has it; a guess without one."""
    call = elementwise_call("add", dtype="fp64", count=float(LARGE), inputs=2, into="out")
    if kernels.unknown(call):
        return 10e9
    time = kernels.time(call)
    return call.moved / (time.body / time.ratio)
