"""The part `cpu` of a fitted machine: its kernels, and for every op that is none of them the numbers of the plain formulas."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from hwsim.devices.kernels import Kernels
from hwsim.devices.work import elementwise_call
from hwsim_calibrate.fit.gpu import reached
from hwsim_calibrate.fit.kernels import FittedKernels, told_sizes
from hwsim_calibrate.fit.writing import kernels_block, quantity
from hwsim_calibrate.store import Measurements

MEMORY: Final = "memory"
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
        found["flop"] = {}
    known = [time.flop * cores for time in kernels.products.values()]
    for dtype in ("fp64", "fp32"):  # every number format is computed in one of the two
        if dtype not in found["flop"]:
            value = quantity(max(known, default=1e9), "FLOP/s")
            found["flop"][dtype] = {"value": value, "source": "guess", "ref": f"no product of {dtype} was measured"}
    if "normal" in kernels.functions and kernels.functions["normal"].each:
        found["random"] = quantity(1.0 / max(kernels.functions["normal"].each.values()), "1/s")
    found["core_bandwidth"] = quantity(one, "B/s")
    most = max(one, reached(measurements))
    found["memory"] = {
        "bandwidth": quantity(most, "B/s"),
        "ref": "reached by one core, or by copies to a GPU: all cores together may have more",
    }
    sizes = told_sizes(measurements) or {level: tier.beyond for level, tier in kernels.levels.items()}
    names = {"L2": "L1", "L3": "L2", "memory": "L3"}
    levels = {names[level]: size for level, size in sizes.items() if level in names}
    waits = latencies(measurements, levels)
    found["caches"] = {
        "levels": {
            level: {"size": quantity(size, "B")} | ({"latency": quantity(waits[level], "s")} if level in waits else {})
            for level, size in levels.items()
        }
    }
    if MEMORY in waits:
        found["memory"]["latency"] = quantity(waits[MEMORY], "s")
    found["kernels"] = kernels_block(fitted)
    return found


def latencies(measurements: Measurements, levels: Mapping[str, float]) -> dict[str, float]:
    """Seconds of an access that each level serves, and memory, from chains of reads; none where those were not measured.

    A level speaks for itself where the one before it holds little of the chain, and it holds all: from four times that one's
    size to a half of its own.  Beyond the last level's double everything comes from memory, with what its pages take.
    """
    chases = sorted((float(size), row.quiet) for row in measurements.of("memory", "chase")
                    if isinstance(size := row.params.get("bytes"), int))  # fmt: skip
    found: dict[str, float] = {}
    before = 0.0
    for level, size in levels.items():
        own = [seconds for chain, seconds in chases if 4 * before <= chain <= size / 2]
        if not own:
            return {}
        found[level], before = median(own), size
    beyond = [seconds for chain, seconds in chases if chain >= 2 * before]
    return found | {MEMORY: median(beyond)} if beyond else {}


def bandwidth(kernels: Kernels) -> float:
    """Bytes per second of one core in an addition of large arrays, as the table has it; a guess without one."""
    call = elementwise_call("add", dtype="fp64", count=float(LARGE), inputs=2, into="out")
    if kernels.unknown(call):
        return 10e9
    time = kernels.time(call)
    return call.moved / (time.body / time.ratio)
