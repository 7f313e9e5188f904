"""Noise and unusual settings of this machine: their effect on measurements, and remedies that need no root."""

from __future__ import annotations

import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.formats import percent
from hwsim_calibrate import environment
from hwsim_calibrate.case import CannotMeasure
from hwsim_calibrate.clocks import SystemClocks, stolen, take
from hwsim_calibrate.native import chaser
from hwsim_calibrate.suites import SUITES, missing

Level = Literal["well", "note", "warning"]
_SPIN: Final = 0.3  # seconds of watching how the machine is disturbed
_WIDE_CORES: Final = ("SkylakeX", "Cooperlake", "Sapphirerapids", "Zen4", "Zen5")  # of OpenBLAS, with AVX-512
_COARSE: Final = 1e-5  # seconds: a CPU clock with longer steps is useless
_LEAVE: Final = "leave it as your programs have it"


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation: how bad, what, its effect on measurements, what would help."""

    level: Level
    what: str
    why: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The inputs of the doctor, so that a test can state another machine.

    Args:
        here: a fingerprint.
        stretch: wall over CPU time of a busy thread.
        stolen: part of the time that a hypervisor took.
        plugged: whether a notebook has its charger; None if unknown.
        missing: suite -> why it cannot be measured.
        chain: why a chain of reads cannot be measured.
        step: seconds in which CPU time is counted.
    """

    here: Mapping[str, Any]
    stretch: float = 1.0
    stolen: float = 0.0
    plugged: bool | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    chain: str = ""
    debug_build: bool = False
    traced: bool = False
    step: float = 1e-9


def look() -> Seen:
    """This machine as it is during half a second."""
    stretch, gone = _disturbance()
    return Seen(
        environment.fingerprint(),
        stretch,
        gone,
        plugged_in(),
        {name: reason for name in SUITES if (reason := missing(name))},
        _chain(),
        bool(sysconfig.get_config_var("Py_DEBUG")),
        sys.gettrace() is not None,
        time.get_clock_info("thread_time").resolution,
    )


def examine(seen: Seen) -> tuple[Finding, ...]:
    """Everything unusual about the machine, worst first."""
    order = ("warning", "note", "well")
    findings = [*_of_time(seen), *_of_the_machine(seen.here), *_of_software(seen)]
    return tuple(sorted(findings, key=lambda finding: order.index(finding.level)))


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


def _of_time(seen: Seen) -> Iterator[Finding]:
    """Other programs, other machines, and the clock."""
    cpu, load = seen.here["cpu"], (seen.here["load"]["average"] or [0.0])[0]
    cpus, running = cpu["usable"], f"{percent(1 / seen.stretch, '.0f')} of the time"
    if seen.stretch > 1.05 or load > 0.5 * cpus:
        fact = f"other programs want the cores: load {load:g} on {cpus}, a busy thread ran {running}"
        why = "wall times come out too long; times of one thread are CPU times and suffer less"
        yield Finding("warning", fact, why, "stop them, or measure when they are done")
    else:
        yield Finding("well", f"quiet: load {load:g} on {cpus} CPUs, a busy thread had its core {running}")
    if seen.stolen >= 0.01:
        why = "time given to other machines counts as CPU time of this one"
        fact = f"the hypervisor took {percent(seen.stolen, '.0f')} of the time"
        yield Finding("warning", fact, why, "measure at another hour, or on a dedicated host")
    if cpu["virtual"]:
        why = "caches and memory are shared with machines that cannot be seen, and the clock is not reported"
        yield Finding("note", "this is a virtual machine", why, "look at the spread of the rounds: hwsim calibrate show")
    if cpu["governor"] not in ("none", "performance"):
        why = "short samples run at a lower clock than long ones"
        yield Finding("note", f"the clock's governor is '{cpu['governor']}'", why, "an administrator can set it to performance")
    if seen.plugged is False:
        yield Finding("warning", "running on battery", "the clock is held down", "plug in the charger")
    if cpu["boost"] == "on":
        why = "the clock depends on how many cores are busy and on how warm they are"
        yield Finding("note", "the clock is boosted", why, "measure with the machine as it will be used")


def _of_the_machine(fingerprint: Mapping[str, Any]) -> Iterator[Finding]:
    """Memory, caches, and the limits of a container."""
    cpu, memory, share = fingerprint["cpu"], fingerprint["memory"], fingerprint["limits"]["cpus"]
    if memory["thp"] == "never":
        why = "every 4 KiB of fresh memory costs a fault of its own: large fresh arrays take up to three times as long"
        yield Finding("note", "huge pages are off", why, "an administrator can set transparent_hugepage to madvise")
    if memory["preloaded"]:
        yield Finding("note", "LD_PRELOAD is set", "another allocator may serve fresh arrays", _LEAVE)
    tuned = [name for name in fingerprint["variables"] if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]
    if tuned:
        yield Finding("note", f"{', '.join(tuned)} set", "fresh arrays come from elsewhere than usual", _LEAVE)
    if share is not None and share < cpu["usable"]:
        why = "threads are stopped in the middle once their share is used up"
        yield Finding("warning", f"a container may use {share:g} of {cpu['usable']} CPUs", why, "ask for whole CPUs")
    if cpu["usable"] < cpu["cpus"]:
        yield Finding("note", f"{cpu['usable']} of {cpu['cpus']} CPUs may be used", "the machine file is of those")
    if cpu["threads_per_core"] > 1:
        yield Finding("note", f"{cpu['threads_per_core']} threads share a core", "two busy threads may have one core's units")


def _of_software(seen: Seen) -> Iterator[Finding]:
    """BLAS, the suites, Python."""
    software, core = seen.here["software"], seen.here["software"]["blas_core"]
    if "avx512f" in seen.here["cpu"]["instructions"] and core not in ("unknown", *_WIDE_CORES):
        fact = f"{software['blas']} runs kernels for {core}, though the CPU has avx512f"
        hint = "setting OPENBLAS_CORETYPE=SkylakeX before `hwsim calibrate` measures what the other kernels would do"
        yield Finding("warning", fact, "matrix products reach half of what they could", hint)
    if core == "unknown":
        yield Finding("note", f"the kernels of {software['blas']} cannot be asked for", "a change of them would not be noticed")
    else:
        yield Finding("well", f"numpy {software['numpy']} with {software['blas']}, kernels for {core}")
    for name, reason in seen.missing.items():
        yield Finding("note", f"suite {name} cannot be measured: {reason}")
    if seen.chain:
        yield Finding("note", "the latency of caches and memory cannot be measured", seen.chain)
    if seen.debug_build:
        yield Finding("warning", "this Python is a debug build", "every call takes several times as long", "use a release build")
    if seen.traced:
        yield Finding("warning", "a debugger or a coverage tool traces this process", "every line takes longer", "run without it")
    if seen.step > _COARSE:
        why = "wall times stand in, which include other programs"
        yield Finding("note", f"CPU time is counted in steps of {seen.step * 1e3:g} ms", why)


def _chain() -> str:
    """Why no chain of reads can be followed; "" where one can."""
    try:
        chaser()
    except CannotMeasure as error:
        return str(error)
    return ""


def plugged_in() -> bool | None:
    """Whether a notebook has its charger; None if unknown."""
    states = [each.read_text().strip() for each in Path("/sys/class/power_supply").glob("A*/online")]
    return None if not states else "1" in states
