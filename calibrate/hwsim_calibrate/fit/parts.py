"""The CPU of a fitted machine: its kernels, and the numbers of the plain formulas for every op that is none of them."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from hwsim.devices.kernels import MeasuredFunctions
from hwsim.devices.work import elementwise_call
from hwsim.units import BYTES
from hwsim_calibrate.fit.gpu import reached
from hwsim_calibrate.fit.kernels import FittedKernels, reported_sizes
from hwsim_calibrate.fit.writing import kernels_block, quantity
from hwsim_calibrate.store import Measurements

LARGE: Final = 1 << 25  # elements of the addition that shows memory's bandwidth: 768 MiB together
UNKNOWN: Final = 10e9  # B/s of a core without a measured addition: a guess
LEVELS: Final = {"L2": "L1", "L3": "L2", "memory": "L3"}  # the cache before each level


def cpu_part(fitted: FittedKernels, measurements: Measurements, ref: str) -> dict[str, Any]:
    """All keys of the part."""
    kernels, environment = fitted.kernels, measurements.environment.get("cpu", {})
    cpu = environment if isinstance(environment, Mapping) else {}
    cores, core_rate = int(cpu.get("usable", 1)), bandwidth(kernels)
    sizes = reported_sizes(measurements) or {level: tier.beyond for level, tier in kernels.levels.items()}
    levels = {LEVELS[level]: size for level, size in sizes.items() if level in LEVELS}
    delays = latencies(measurements, levels)
    memory = {
        "bandwidth": quantity(max(core_rate, reached(measurements)), "B/s"),
        "ref": "reached by one core, or by copies to a GPU: all cores together may have more",
    }
    drawing = kernels.functions["normal"].each if "normal" in kernels.functions else {}
    return {
        "kind": "cpu",
        "name": str(cpu.get("model", "")),
        "source": "measured",
        "ref": ref,
        "cores": cores,
        "flop": _peaks(kernels, cores),
        **({"random": quantity(1.0 / max(drawing.values()), "1/s")} if drawing else {}),
        "core_bandwidth": quantity(core_rate, "B/s"),
        "memory": memory | ({"latency": quantity(delays["memory"], "s")} if "memory" in delays else {}),
        "caches": {
            "levels": {
                level: {"size": quantity(size, "B")} | ({"latency": quantity(delays[level], "s")} if level in delays else {})
                for level, size in levels.items()
            }
        },
        "kernels": kernels_block(fitted),
    }


def _peaks(kernels: MeasuredFunctions, cores: int) -> dict[str, Any]:
    """FLOP/s by number format; every format is computed in fp64 or fp32, which therefore have at least a guess."""
    rates = {dtype: time.flop * cores for dtype, time in kernels.products.items() if dtype in BYTES}
    ref = "large products on one core, times cores"
    peaks = {dtype: {"value": quantity(rate, "FLOP/s"), "source": "measured", "ref": ref} for dtype, rate in rates.items()}
    highest = quantity(max(rates.values(), default=1e9), "FLOP/s")
    for dtype in ("fp64", "fp32"):
        if dtype not in peaks:
            peaks[dtype] = {"value": highest, "source": "guess", "ref": f"no product of {dtype} was measured"}
    return peaks


def latencies(measurements: Measurements, levels: Mapping[str, float]) -> dict[str, float]:
    """Seconds of an access that each level serves, and memory, from chains of reads; none where those were not measured.

    A level shows where the level before it holds little of the chain and it holds all: from four times the size before it to half
    of its own. Beyond twice the last level everything comes from memory, including the cost of its pages.
    """
    chains = sorted((float(size), row.quiet) for row in measurements.of("memory", "chase")
                    if isinstance(size := row.params.get("bytes"), int))  # fmt: skip
    delays: dict[str, float] = {}
    before = 0.0
    for level, size in levels.items():
        served = [seconds for chain, seconds in chains if 4 * before <= chain <= size / 2]
        if not served:
            return {}
        delays[level], before = median(served), size
    beyond = [seconds for chain, seconds in chains if chain >= 2 * before]
    return delays | {"memory": median(beyond)} if beyond else {}


def bandwidth(kernels: MeasuredFunctions) -> float:
    """Bytes per second of one core in an addition of large arrays, by the table; a guess without one."""
    call = elementwise_call("add", dtype="fp64", count=float(LARGE), inputs=2, into="out")
    if kernels.unknown(call):
        return UNKNOWN
    time = kernels.time(call)
    return call.moved / (time.body / time.ratio)
