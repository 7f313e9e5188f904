"""The CPU of a fitted machine: its kernels, and the peaks, bandwidths and latencies for ops without a measured kernel."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from hwsim.devices.kernels import MeasuredFunctions
from hwsim.devices.work import elementwise_call
from hwsim.units import BYTES
from hwsim_calibrate.fit.gpu import host_bandwidth
from hwsim_calibrate.fit.kernels import FittedKernels, reported_sizes
from hwsim_calibrate.fit.machine_file import kernels_block, quantity
from hwsim_calibrate.store import Measurements

LARGE: Final = 1 << 25  # elements of the addition for the memory bandwidth: 768 MiB for all operands
DEFAULT_BANDWIDTH: Final = 10e9  # B/s of a core without a measured addition: a guess
LEVELS: Final = {"L2": "L1", "L3": "L2", "memory": "L3"}  # level -> the cache before it


def cpu_part(fitted: FittedKernels, measurements: Measurements, ref: str) -> dict[str, Any]:
    """Return all keys of the part."""
    kernels, environment = fitted.kernels, measurements.environment.get("cpu", {})
    cpu = environment if isinstance(environment, Mapping) else {}
    cores, core_rate = int(cpu.get("usable", 1)), bandwidth(kernels)
    sizes = reported_sizes(measurements) or {level: tier.beyond for level, tier in kernels.levels.items()}
    levels = {LEVELS[level]: size for level, size in sizes.items() if level in LEVELS}
    delays = latencies(measurements, levels)
    memory = {
        "bandwidth": quantity(max(core_rate, host_bandwidth(measurements)), "B/s"),
        "ref": "a lower bound, reached by one core or by copies to a GPU; all cores together may reach more",
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
    """Return FLOP/s by number format; fp64 and fp32 have at least a guess, because other formats are computed in them."""
    rates = {dtype: time.flop * cores for dtype, time in kernels.products.items() if dtype in BYTES}
    ref = "large matmuls on one core, multiplied by the number of cores"
    peaks = {dtype: {"value": quantity(rate, "FLOP/s"), "source": "measured", "ref": ref} for dtype, rate in rates.items()}
    highest = quantity(max(rates.values(), default=1e9), "FLOP/s")
    for dtype in ("fp64", "fp32"):
        if dtype not in peaks:
            peaks[dtype] = {"value": highest, "source": "guess", "ref": f"no {dtype} matmul was measured"}
    return peaks


def latencies(measurements: Measurements, levels: Mapping[str, float]) -> dict[str, float]:
    """Return the latency (s) of each cache level and of memory from pointer chases; empty if these were not measured.

    A level serves chains from 4x the size of the previous level to half of its own size. Memory serves chains beyond twice the
    size of the last level, including TLB misses.
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
    """Return the bandwidth (B/s) of one core in an addition of large arrays; without a measured addition, a guess."""
    call = elementwise_call("add", dtype="fp64", count=float(LARGE), inputs=2, into="out")
    if kernels.unknown(call):
        return DEFAULT_BANDWIDTH
    time = kernels.time(call)
    return call.moved / (time.body / time.ratio)
