"""What machine it was, and what of it changes a measurement: no names of hosts, users or folders.

Caches are said as the system's files say them and as the C library does: in virtual machines the two differ, and the fit finds
a third size, which is the one that counts.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from hwsim.version import __version__
from hwsim_calibrate import blas
from hwsim_calibrate.clocks import stolen
from hwsim_calibrate.suites import usable_cpus

VARIABLES: Final = (
    "BLIS_",
    "CUPY_",
    "GLIBC_TUNABLES",
    "GOTO_",
    "MALLOC_",
    "MKL_",
    "NPY_",
    "NVIDIA_TF32",
    "OMP_",
    "OPENBLAS_",
    "PYTHONMALLOC",
)
WIDE: Final = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "asimd", "sve", "sve2", "v")
PACKAGES: Final = ("cupy", "cupy-cuda12x", "cupy-cuda13x", "numba", "scipy", "threadpoolctl")
# Two measurements may go into one file if these agree: (part of the fingerprint, key)
SAME: Final = (
    ("cpu", "model"), ("cpu", "usable"), ("cpu", "caches"), ("memory", "thp"), ("software", "system"), ("software", "python"),
    ("software", "numpy"), ("software", "blas_core"), ("variables", None), ("gpu", "name"),
)  # fmt: skip
_SYS: Final = Path("/sys/devices/system/cpu")
_CGROUP: Final = Path("/sys/fs/cgroup")


def fingerprint() -> dict[str, Any]:
    """All of it, as it goes into a file."""
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
    """Model, instructions, cores, caches as two sources say them, clock and who governs it."""
    info = _cpuinfo()
    flags = (info.get("flags") or info.get("Features") or info.get("isa") or "").split()
    return {
        "model": info.get("model name") or info.get("uarch") or platform.processor() or platform.machine(),
        "vendor": info.get("vendor_id", ""),
        "family": [info.get(key, "") for key in ("cpu family", "model", "stepping")],
        "architecture": platform.machine(),
        "instructions": [each for each in WIDE if each in flags],
        "virtual": "hypervisor" in flags,
        "cpus": os.cpu_count() or 1,
        "usable": usable_cpus(),
        "threads_per_core": len(_numbers(_read(_SYS / "cpu0/topology/thread_siblings_list"))) or 1,
        "numa_domains": len(_numbers(_read(Path("/sys/devices/system/node/online")))) or 1,
        "mhz": _as_float(info.get("cpu MHz", "")),
        "governor": _read(_SYS / "cpu0/cpufreq/scaling_governor") or "none",
        "boost": {"1": "on", "0": "off"}.get(_read(_SYS / "cpufreq/boost"), "unknown"),
        "caches": caches(),
        "caches_libc": _caches_of_libc(),
    }


def caches() -> dict[str, dict[str, Any]]:
    """Of the first core, by level as in L1d, L2: bytes, line, ways, and how many CPUs share it."""
    found: dict[str, dict[str, Any]] = {}
    for index in sorted((_SYS / "cpu0/cache").glob("index*")) if _SYS.is_dir() else []:
        said = {key: _read(index / key) for key in ("level", "type", "size", "coherency_line_size", "ways_of_associativity")}
        if said["type"] == "Instruction" or not said["size"]:
            continue
        name = f"L{said['level']}" + ("d" if said["type"] == "Data" else "")
        found[name] = {
            "bytes": _as_bytes(said["size"]),
            "line": int(said["coherency_line_size"] or 0),
            "ways": int(said["ways_of_associativity"] or 0),
            "shared_by": len(_numbers(_read(index / "shared_cpu_list"))) or 1,
        }
    return found


def memory() -> dict[str, Any]:
    """Bytes, pages, huge pages, and the allocator's library."""
    thp = _read(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "bytes": _meminfo("MemTotal"),
        "page": _sysconf("SC_PAGE_SIZE"),
        "thp": thp[thp.find("[") + 1 : thp.find("]")] if "[" in thp else "unknown",
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "preloaded": bool(os.environ.get("LD_PRELOAD")),
    }


def limits() -> dict[str, Any]:
    """What a container leaves: CPUs' worth of time (None: all), bytes (None: all)."""
    quota, _, period = (_read(_CGROUP / "cpu.max") or "max 100000").partition(" ")
    most = _read(_CGROUP / "memory.max")
    return {
        "cpus": int(quota) / int(period) if quota.isdigit() and period.isdigit() else None,
        "memory": int(most) if most.isdigit() else None,
    }


def load() -> dict[str, Any]:
    """How busy the machine is: programs that want a core, part of the time stolen, part of it that somebody waits."""
    gone, ticks = stolen()
    return {
        "average": [round(each, 2) for each in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "stolen": round(gone / ticks, 4) if ticks else None,
        "pressure": _pressure(),
    }


def software() -> dict[str, Any]:
    """System, Python, numpy, its BLAS and which kernels that chose."""
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
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def variables() -> dict[str, str]:
    """Those of the environment that change what libraries do; a path is not told."""
    found = {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)}
    return {name: "(a path)" if "/" in value or "\\" in value else value for name, value in found.items()}


def differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> tuple[str, ...]:
    """Why two fingerprints are not of the same machine set up the same way.

    >>> differences({"cpu": {"model": "EPYC", "usable": 2}}, {"cpu": {"model": "Xeon", "usable": 2}})
    ('cpu model: EPYC, now Xeon',)
    """
    found = []
    for part, key in SAME:
        was, now = (each.get(part, {}) for each in (one, two))
        was, now = (_without_threads(was), _without_threads(now)) if key is None else (was.get(key), now.get(key))
        if was is not None and now is not None and was != now:
            found.append(f"{part} {key or ''}".strip() + f": {was}, now {now}")
    return tuple(found)


def _without_threads(said: Mapping[str, str]) -> dict[str, str]:
    """How many threads a library has is set for every case."""
    return {name: value for name, value in said.items() if not name.endswith("_NUM_THREADS")}


def file_system(folder: str | Path) -> str:
    """The kind of file system of a folder, such as ext4 or tmpfs; its name and place are not told."""
    best = ("", "unknown")
    whole = str(Path(folder).resolve())
    for line in _read(Path("/proc/mounts")).splitlines():
        _, place, kind, *_ = line.split()
        if (whole + "/").startswith(place.rstrip("/") + "/") and len(place) >= len(best[0]):
            best = (place, kind)
    return best[1]


def _cpuinfo() -> dict[str, str]:
    """Of the first core."""
    found: dict[str, str] = {}
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        key, colon, value = line.partition(":")
        if colon:
            found.setdefault(key.strip(), value.strip())
    return found


def _caches_of_libc() -> dict[str, int]:
    if platform.libc_ver()[0] != "glibc":  # the numbers are those of its unistd.h, which Python has no names for
        return {}
    return {level: size for level, number in (("L1d", 188), ("L2", 191), ("L3", 194)) if (size := _sysconf(number))}


def _pressure() -> float | None:
    """Percent of the last ten seconds in which some program waited for a core."""
    for word in _read(Path("/proc/pressure/cpu")).split():
        if word.startswith("avg10="):
            return _as_float(word[6:])
    return None


def _sysconf(name: str | int) -> int:
    try:
        return max(os.sysconf(name), 0) if hasattr(os, "sysconf") else 0
    except (OSError, ValueError):
        return 0


def _meminfo(name: str) -> int:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return _sysconf("SC_PAGE_SIZE") * _sysconf("SC_PHYS_PAGES")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _as_bytes(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def _numbers(text: str) -> list[int]:
    """
    >>> _numbers("0-2,8")
    [0, 1, 2, 8]
    """
    found: list[int] = []
    for each in text.split(",") if text else []:
        first, _, last = each.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
