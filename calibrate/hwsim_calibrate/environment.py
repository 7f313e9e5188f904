"""The fingerprint of a machine: properties that affect measurements, without names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim import __version__
from hwsim_calibrate import blas
from hwsim_calibrate.clocks import stolen
from hwsim_calibrate.suites import usable_cpus

VARIABLES: Final = (  # prefixes of environment variables
    "BLIS_", "CUPY_", "GLIBC_TUNABLES", "GOTO_", "MALLOC_", "MKL_", "NPY_", "NVIDIA_TF32", "OMP_", "OPENBLAS_", "PYTHONMALLOC",
)  # fmt: skip
INSTRUCTIONS: Final = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve", "sve2", "v")
# Measurements share a file only if these values agree: (part of the fingerprint, key)
SAME: Final = (
    ("cpu", "model"), ("cpu", "usable"), ("cpu", "caches"), ("memory", "thp"), ("software", "system"), ("software", "python"),
    ("software", "numpy"), ("software", "blas_core"), ("variables", None), ("gpu", "name"),
    ("gpu", "number"),
)  # fmt: skip
_SYS: Final = Path("/sys/devices/system/cpu")
_CGROUP: Final = Path("/sys/fs/cgroup")
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def fingerprint() -> dict[str, Any]:
    """Return the fingerprint of this machine."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu(),
        "memory": memory(),
        "limits": limits(),
        "load": load(),
        "software": software(),
        "variables": variables(),
    }


def cpu() -> dict[str, Any]:
    """Return the CPU's model, instruction sets, cores, caches and frequency governor."""
    info = _fields(_read(Path("/proc/cpuinfo")))
    flags = (info.get("flags") or info.get("Features") or info.get("isa") or "").split()
    return {
        "model": info.get("model name") or info.get("uarch") or platform.processor() or platform.machine(),
        "vendor": info.get("vendor_id", ""),
        "family": [info.get(key, "") for key in ("cpu family", "model", "stepping")],
        "architecture": platform.machine(),
        "instructions": [name for name in INSTRUCTIONS if name in flags],
        "virtual": "hypervisor" in flags,
        "cpus": os.cpu_count() or 1,
        "usable": usable_cpus(),
        "threads_per_core": len(_numbers(_read(_SYS / "cpu0/topology/thread_siblings_list"))) or 1,
        "governor": _read(_SYS / "cpu0/cpufreq/scaling_governor") or "none",
        "boost": {"1": "on", "0": "off"}.get(_read(_SYS / "cpufreq/boost"), "unknown"),
        "caches": caches(),
    }


def caches() -> dict[str, dict[str, Any]]:
    """Return the caches of the first core by level (L1d, L2, ...): bytes, line, ways, and the number of CPUs that share it."""
    levels: dict[str, dict[str, Any]] = {}
    for index in sorted((_SYS / "cpu0/cache").glob("index*")) if _SYS.is_dir() else []:
        level, kind, size, line, ways, shared = (
            _read(index / key)
            for key in ("level", "type", "size", "coherency_line_size", "ways_of_associativity", "shared_cpu_list")
        )
        if kind == "Instruction" or not size:
            continue
        levels[f"L{level}{'d' if kind == 'Data' else ''}"] = {
            "bytes": int(size[:-1]) * _UNITS[size[-1]] if size[-1] in _UNITS else int(size),
            "line": int(line or 0),
            "ways": int(ways or 0),
            "shared_by": len(_numbers(shared)) or 1,
        }
    return levels


def memory() -> dict[str, Any]:
    """Return the memory size, page sizes and the C library."""
    thp = _read(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    total = _fields(_read(Path("/proc/meminfo"))).get("MemTotal", "").split()
    page = _sysconf("SC_PAGE_SIZE")
    return {
        "bytes": int(total[0]) * 1024 if total else page * _sysconf("SC_PHYS_PAGES"),
        "page": page,
        "thp": thp[thp.find("[") + 1 : thp.find("]")] if "[" in thp else "unknown",
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "preloaded": bool(os.environ.get("LD_PRELOAD")),
    }


def limits() -> dict[str, Any]:
    """Return the limits of the container: CPUs and bytes, or None without a limit."""
    quota, _, period = (_read(_CGROUP / "cpu.max") or "max 100000").partition(" ")
    memory_limit = _read(_CGROUP / "memory.max")
    return {
        "cpus": int(quota) / int(period) if quota.isdigit() and period.isdigit() else None,
        "memory": int(memory_limit) if memory_limit.isdigit() else None,
    }


def load() -> dict[str, Any]:
    """Return the load average and the share of stolen CPU time since boot."""
    steal, ticks = stolen()
    return {
        "average": [round(average, 2) for average in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "stolen": round(steal / ticks, 4) if ticks else None,
    }


def software() -> dict[str, Any]:
    """Return the versions of the system, Python, numpy and BLAS, and the BLAS kernels in use."""
    library = blas.loaded()
    return {
        "hwsim": __version__,
        "system": platform.system(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "numpy": np.__version__,
        "blas": blas.built_with(),
        "blas_core": library.core() if library else "unknown",
        "blas_threads": library.threads() if library else None,
    }


def variables() -> dict[str, str]:
    """Return environment variables that change the behaviour of libraries; paths are replaced by a placeholder."""
    chosen = {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)}
    return {name: "(a path)" if "/" in value or "\\" in value else value for name, value in chosen.items()}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the differences between two fingerprints that prevent a comparison of their measurements.

    >>> differences({"cpu": {"model": "EPYC", "usable": 2}}, {"cpu": {"model": "Xeon", "usable": 2}})
    ('cpu model: EPYC, now Xeon',)
    """
    texts = []
    for part, key in SAME:
        pair = [fingerprint.get(part, {}) for fingerprint in (before, after)]
        old, new = (_without_threads(values) if key is None else values.get(key) for values in pair)
        if old is not None and new is not None and old != new:
            texts.append(f"{part} {key or ''}".strip() + f": {old}, now {new}")
    return tuple(texts)


def _without_threads(values: Mapping[str, str]) -> dict[str, str]:
    """Omit the thread counts of libraries, which are set for every case."""
    return {name: value for name, value in values.items() if not name.endswith("_NUM_THREADS")}


def _fields(text: str) -> dict[str, str]:
    """Parse lines of `key: value`; for repeated keys, return the first value."""
    pairs = [line.partition(":") for line in text.splitlines() if ":" in line]
    return {key.strip(): value.strip() for key, _, value in reversed(pairs)}


def _sysconf(name: str) -> int:
    try:
        return max(os.sysconf(name), 0) if hasattr(os, "sysconf") else 0
    except (OSError, ValueError):
        return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _numbers(text: str) -> list[int]:
    """Expand a list of ranges.

    >>> _numbers("0-2,8")
    [0, 1, 2, 8]
    """
    pairs = [part.partition("-") for part in text.split(",")] if text else []
    return [cpu_index for first, _, last in pairs for cpu_index in range(int(first), int(last or first) + 1)]
