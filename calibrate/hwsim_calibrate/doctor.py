"""What makes this machine noisy or unusual for measuring, why it matters, and what would help without being root."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hwsim_calibrate import environment
from hwsim_calibrate.case import CannotMeasure
from hwsim_calibrate.clocks import SystemClocks, stolen, take
from hwsim_calibrate.native import chaser
from hwsim_calibrate.suites import SUITES, MiB, missing

Level = Literal["well", "note", "warning"]
_SPIN: Final = 0.3  # seconds of looking at how the machine is disturbed
_KERNELS: Final = {"avx512f": ("SkylakeX", "Cooperlake", "Sapphirerapids", "Zen4", "Zen5")}
_CORES_ENV: Final = "OPENBLAS_CORETYPE=SkylakeX before `hwsim calibrate` measures what the other kernels would do"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing seen: how bad, what, what it does to measurements, what would help."""

    level: Level
    what: str
    why: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the doctor looks at, so that a test can state another machine.

    here: a fingerprint.  stretch: wall over CPU time of a busy thread.  stolen: part of the time that a hypervisor took.
    plugged: whether a notebook has its charger.  free, files: bytes left and kind of file system of the temporary folder.
    missing: suite -> why it cannot be measured.  chain: why a chain of reads cannot.  step: seconds in which CPU time is counted.
    """

    here: Mapping[str, Any]
    stretch: float = 1.0
    stolen: float = 0.0
    plugged: bool | None = None
    free: int = 1 << 40
    files: str = "ext4"
    missing: Mapping[str, str] = field(default_factory=dict)
    chain: str = ""
    debug_build: bool = False
    traced: bool = False
    step: float = 1e-9


def look() -> Seen:
    """This machine as it is during half a second."""
    stretch, gone = _disturbance()
    folder = tempfile.gettempdir()
    return Seen(
        environment.fingerprint(),
        stretch,
        gone,
        plugged_in(),
        shutil.disk_usage(folder).free,
        environment.file_system(folder),
        {name: reason for name in SUITES if (reason := missing(name))},
        _chain(),
        bool(sysconfig.get_config_var("Py_DEBUG")),
        sys.gettrace() is not None,
        time.get_clock_info("thread_time").resolution,
    )


def examine(seen: Seen) -> tuple[Finding, ...]:
    """What is unusual about it, worst first."""
    order = ("warning", "note", "well")
    return tuple(sorted(_findings(seen), key=lambda each: order.index(each.level)))


def _findings(seen: Seen) -> Iterator[Finding]:
    yield from _quiet(seen.here, seen.stretch, seen.stolen)
    yield from _clock(seen.here["cpu"], seen.plugged)
    yield from _memory(seen.here)
    yield from _limits(seen.here)
    yield from _folder(seen.free, seen.files)
    yield from _library(seen.here)
    yield from _suites(seen.missing, seen.chain)
    yield from _python(seen)


def _disturbance() -> tuple[float, float]:
    """(wall over CPU time of a busy thread, part of the time stolen) of a fraction of a second."""
    clocks, before, end = SystemClocks(), stolen(), time.perf_counter() + _SPIN
    wall = cpu = 0.0
    while time.perf_counter() < end:
        sample = take(clocks, _spin, 10)
        wall, cpu = wall + sample.wall, cpu + sample.cpu
    after = stolen()
    return wall / max(cpu, 1e-9), (after[0] - before[0]) / max(after[1] - before[1], 1)


def _spin() -> None:
    for _ in range(20_000):
        pass


def _quiet(here: Mapping[str, Any], ratio: float, gone: float) -> Iterator[Finding]:
    load = (here["load"]["average"] or [0.0])[0]
    cpus = here["cpu"]["usable"]
    why = "wall times of several threads, files and networks come out too long; times of one thread are CPU times and suffer less"
    if ratio > 1.05 or load > 0.5 * cpus:
        what = f"other programs want the cores: load {load:g} on {cpus}, a busy thread ran {100 / ratio:.0f} % of the time"
        yield Finding("warning", what, why, "stop them, or measure when they are done")
    else:
        yield Finding("well", f"quiet: load {load:g} on {cpus} CPUs, a busy thread had its core {100 / ratio:.0f} % of the time")
    if gone >= 0.01:
        why = "time given to other machines counts as CPU time of this one"
        yield Finding(
            "warning",
            f"the hypervisor took {100 * gone:.0f} % of the time",
            why,
            "measure at another hour, or on a dedicated host",
        )
    if here["cpu"]["virtual"]:
        why = "caches and memory are shared with machines that cannot be seen, and the clock is not told"
        yield Finding("note", "this is a virtual machine", why, "repeat the measurement and compare: hwsim calibrate diff")


def _clock(cpu: Mapping[str, Any], plugged: bool | None) -> Iterator[Finding]:
    if cpu["governor"] not in ("none", "performance"):
        why = "short samples run at a lower clock than long ones"
        yield Finding("note", f"the clock's governor is '{cpu['governor']}'", why, "an administrator can set it to performance")
    if plugged is False:
        yield Finding("warning", "running on battery", "the clock is held down", "plug in the charger")
    if cpu["boost"] == "on":
        why = "the clock depends on how many cores are busy and on how warm they are"
        yield Finding("note", "the clock is boosted", why, "measure with the machine as it will be used")


def _memory(here: Mapping[str, Any]) -> Iterator[Finding]:
    thp = here["memory"]["thp"]
    if thp == "never":
        why = "every 4 KiB of fresh memory costs a fault of its own: large fresh arrays take up to three times as long"
        yield Finding("note", "huge pages are off", why, "an administrator can set transparent_hugepage to madvise")
    if here["memory"]["preloaded"]:
        yield Finding(
            "note", "LD_PRELOAD is set", "another allocator may serve fresh arrays", "leave it as your programs have it"
        )
    tuned = [name for name in here["variables"] if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]
    if tuned:
        yield Finding(
            "note", f"{', '.join(tuned)} set", "fresh arrays come from elsewhere than usual", "leave it as your programs have it"
        )
    sysfs, libc = here["cpu"]["caches"], here["cpu"]["caches_libc"]
    for level, size in libc.items():
        said = sysfs.get(level, {}).get("bytes", size)
        if said != size:
            what = f"{level} is {said // 1024} KiB as the system says, {size // 1024} KiB as the C library does"
            yield Finding("note", what, "libraries choose how they copy by the second", "the fit finds the size that counts")


def _limits(here: Mapping[str, Any]) -> Iterator[Finding]:
    limits, cpu = here["limits"], here["cpu"]
    if limits["cpus"] is not None and limits["cpus"] < cpu["usable"]:
        why = "threads are stopped in the middle once their share is used up"
        yield Finding("warning", f"a container may use {limits['cpus']:g} of {cpu['usable']} CPUs", why, "ask for whole CPUs")
    if cpu["usable"] < cpu["cpus"]:
        yield Finding("note", f"{cpu['usable']} of {cpu['cpus']} CPUs may be used", "the machine file is of those")
    if cpu["threads_per_core"] > 1:
        yield Finding("note", f"{cpu['threads_per_core']} threads share a core", "two busy threads may have one core's units")


def _folder(free: int, kind: str) -> Iterator[Finding]:
    if free < 512 * MiB:
        yield Finding(
            "warning", f"{free // MiB} MiB left in the temporary folder", "`storage` writes 128 MiB", "--folder names another"
        )
    if kind in ("tmpfs", "ramfs"):
        yield Finding(
            "warning", f"the temporary folder is {kind}", "`storage` would measure memory", "--folder names one on a disk"
        )


def _library(here: Mapping[str, Any]) -> Iterator[Finding]:
    software, able = here["software"], here["cpu"]["instructions"]
    core = software["blas_core"]
    for instructions, cores in _KERNELS.items():
        if instructions in able and core not in ("unknown", *cores):
            what = f"{software['blas']} runs kernels for {core}, though the CPU has {instructions}"
            yield Finding("warning", what, "matrix products reach half of what they could", f"setting {_CORES_ENV}")
    if core == "unknown":
        yield Finding("note", f"the kernels of {software['blas']} cannot be asked for", "a change of them would not be noticed")
    else:
        yield Finding("well", f"numpy {software['numpy']} with {software['blas']}, kernels for {core}")


def _suites(missing: Mapping[str, str], chain: str) -> Iterator[Finding]:
    for name, reason in missing.items():
        yield Finding("note", f"suite {name} cannot be measured: {reason}")
    if chain:
        yield Finding("note", "the latency of caches and memory cannot be measured", chain)


def _chain() -> str:
    """Why no chain of reads can be followed; empty where one can."""
    try:
        chaser()
    except CannotMeasure as error:
        return str(error)
    return ""


def _python(seen: Seen) -> Iterator[Finding]:
    if seen.debug_build:
        yield Finding("warning", "this Python is a debug build", "every call takes several times as long", "use a release build")
    if seen.traced:
        yield Finding("warning", "a debugger or a coverage tool traces this process", "every line takes longer", "run without it")
    if seen.step > 1e-5:
        why = "wall times stand in, which count what others do"
        yield Finding("note", f"CPU time is counted in steps of {seen.step * 1e3:g} ms", why)


def plugged_in() -> bool | None:
    """Whether a notebook has its charger; None where nobody knows."""
    said = [each.read_text().strip() for each in Path("/sys/class/power_supply").glob("A*/online")]
    return None if not said else "1" in said
