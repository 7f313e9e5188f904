"""Findings about sources of noise and unusual settings of this machine, with their effect on measurements and remedies."""

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
from hwsim_calibrate.pointer_chase import compile_chase
from hwsim_calibrate.suites import SUITES, missing

Level = Literal["ok", "note", "warning"]
_SPIN: Final = 0.3  # seconds in which the disturbance is observed
_WIDE_CORES: Final = ("SkylakeX", "Cooperlake", "Sapphirerapids", "Zen4", "Zen5")  # OpenBLAS core types with AVX-512
_COARSE: Final = 1e-5  # seconds: CPU clocks with longer steps cannot time the cases
_LEAVE: Final = "keep the setting that your programs use"


@dataclass(frozen=True, slots=True)
class Finding:
    """An observation with its severity.

    Args:
        level: severity.
        what: the observed fact.
        why: its effect on measurements.
        help: the remedy.
    """

    level: Level
    what: str
    why: str = ""
    help: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """The inputs of the doctor; tests state other machines.

    Args:
        fingerprint: see `environment.fingerprint`.
        stretch: wall time of a busy thread over its CPU time.
        stolen: share of the CPU time that a hypervisor took.
        is_plugged_in: whether a notebook is connected to its charger; None if unknown.
        missing: suite -> why it cannot be measured.
        chase_problem: why pointer chases cannot be measured; "" if they can.
        is_debug_build: whether Python is a debug build.
        is_traced: whether a debugger or coverage tool traces the process.
        cpu_clock_step_s: resolution of the CPU clock (s).
    """

    fingerprint: Mapping[str, Any]
    stretch: float = 1.0
    stolen: float = 0.0
    is_plugged_in: bool | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    chase_problem: str = ""
    is_debug_build: bool = False
    is_traced: bool = False
    cpu_clock_step_s: float = 1e-9


def observe() -> Observation:
    """Observe this machine for about half a second."""
    stretch, steal = _disturbance()
    return Observation(
        environment.fingerprint(),
        stretch,
        steal,
        is_plugged_in(),
        {name: reason for name in SUITES if (reason := missing(name))},
        _chase_problem(),
        bool(sysconfig.get_config_var("Py_DEBUG")),
        sys.gettrace() is not None,
        time.get_clock_info("thread_time").resolution,
    )


def examine(observation: Observation) -> tuple[Finding, ...]:
    """Return the findings about a machine, the most severe first."""
    order = ("warning", "note", "ok")
    findings = [*_time_findings(observation), *_hardware_findings(observation.fingerprint), *_software_findings(observation)]
    return tuple(sorted(findings, key=lambda finding: order.index(finding.level)))


def _disturbance() -> tuple[float, float]:
    """Return (wall over CPU time of a busy thread, share of stolen CPU time) during a fraction of a second."""
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


def _time_findings(observation: Observation) -> Iterator[Finding]:
    cpu, load = observation.fingerprint["cpu"], (observation.fingerprint["load"]["average"] or [0.0])[0]
    cpus, running = cpu["usable"], f"{percent(1 / observation.stretch, '.0f')} of the time"
    if observation.stretch > 1.05 or load > 0.5 * cpus:
        fact = f"other programs are running: load average {load:g} on {cpus} CPUs, a busy thread ran {running}"
        why = "wall times are too long; single-thread cases count CPU time and are affected less"
        yield Finding("warning", fact, why, "stop the other programs, or measure later")
    else:
        yield Finding("ok", f"the machine is quiet: load average {load:g} on {cpus} CPUs, a busy thread ran {running}")
    if observation.stolen >= 0.01:
        why = "stolen time counts as CPU time of this machine"
        fact = f"the hypervisor gave {percent(observation.stolen, '.0f')} of the CPU time to other virtual machines"
        yield Finding("warning", fact, why, "measure at another time, or on a dedicated host")
    if cpu["virtual"]:
        why = "other virtual machines share the caches and the memory bandwidth, and the clock frequency is not reported"
        yield Finding("note", "this is a virtual machine", why, "check the spread between rounds: hwsim calibrate show FILE")
    if cpu["governor"] not in ("none", "performance"):
        why = "short samples run at a lower clock frequency than long samples"
        yield Finding("note", f"the CPU governor is '{cpu['governor']}'", why, "an administrator can set it to performance")
    if observation.is_plugged_in is False:
        yield Finding("warning", "the machine runs on battery", "the clock frequency is reduced", "connect the charger")
    if cpu["boost"] == "on":
        why = "the clock frequency depends on the number of busy cores and on the temperature"
        yield Finding("note", "CPU boost is enabled", why, "measure under the conditions of normal use")


def _hardware_findings(fingerprint: Mapping[str, Any]) -> Iterator[Finding]:
    cpu, memory, share = fingerprint["cpu"], fingerprint["memory"], fingerprint["limits"]["cpus"]
    if memory["thp"] == "never":
        why = "every 4 KiB of fresh memory causes a page fault, so large fresh arrays take up to three times as long"
        yield Finding("note", "huge pages are disabled", why, "an administrator can set transparent_hugepage to madvise")
    if memory["preloaded"]:
        yield Finding("note", "LD_PRELOAD is set", "fresh arrays may use another allocator", _LEAVE)
    tuned = [name for name in fingerprint["variables"] if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))]
    if tuned:
        yield Finding("note", f"set: {', '.join(tuned)}", "the allocator may treat fresh arrays differently", _LEAVE)
    if share is not None and share < cpu["usable"]:
        why = "threads are paused when the limit is used up"
        yield Finding("warning", f"the container is limited to {share:g} of {cpu['usable']} CPUs", why, "request whole CPUs")
    if cpu["usable"] < cpu["cpus"]:
        why = "the machine file describes only these CPUs"
        yield Finding("note", f"this process may use {cpu['usable']} of {cpu['cpus']} CPUs", why)
    if cpu["threads_per_core"] > 1:
        why = "two busy threads may share the execution units of one core"
        yield Finding("note", f"each core runs {cpu['threads_per_core']} hardware threads", why)


def _software_findings(observation: Observation) -> Iterator[Finding]:
    software, core = observation.fingerprint["software"], observation.fingerprint["software"]["blas_core"]
    if "avx512f" in observation.fingerprint["cpu"]["instructions"] and core not in ("unknown", *_WIDE_CORES):
        fact = f"{software['blas']} uses kernels for {core}, but the CPU has avx512f"
        hint = "to measure the AVX-512 kernels, set OPENBLAS_CORETYPE=SkylakeX before `hwsim calibrate`"
        yield Finding("warning", fact, "matmuls reach half of their possible rate", hint)
    if core == "unknown":
        yield Finding("note", f"the kernels of {software['blas']} are unknown", "a change of the kernels would not be detected")
    else:
        yield Finding("ok", f"numpy {software['numpy']} with {software['blas']}, kernels for {core}")
    for name, reason in observation.missing.items():
        yield Finding("note", f"the suite {name} cannot be measured: {reason}")
    if observation.chase_problem:
        yield Finding("note", "the latency of caches and memory cannot be measured", observation.chase_problem)
    if observation.is_debug_build:
        yield Finding("warning", "this Python is a debug build", "every call takes several times as long", "use a release build")
    if observation.is_traced:
        yield Finding("warning", "a debugger or coverage tool traces this process", "every line takes longer", "run without it")
    if observation.cpu_clock_step_s > _COARSE:
        why = "wall time is used instead, which includes other programs"
        yield Finding("note", f"CPU time is counted in steps of {observation.cpu_clock_step_s * 1e3:g} ms", why)


def _chase_problem() -> str:
    try:
        compile_chase()
    except CannotMeasure as error:
        return str(error)
    return ""


def is_plugged_in() -> bool | None:
    """Return whether a notebook is connected to its charger, or None if unknown."""
    states = [path.read_text().strip() for path in Path("/sys/class/power_supply").glob("A*/online")]
    return None if not states else "1" in states
