"""What `calibrate doctor` says, of machines that the tests state: what it says of this one is nobody's business."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim_calibrate import doctor, environment
from hwsim_calibrate.doctor import Observation, examine
from tests.command import hwsim

# A quiet machine with nothing unusual about it, with every key of a fingerprint
QUIET: Final[dict[str, dict[str, Any]]] = {
    "cpu": {
        "model": "Abacus 9000", "vendor": "Abacus", "family": ["1", "2", "3"], "architecture": "x86_64",
        "instructions": ["sse4_2", "avx", "avx2", "fma"], "virtual": False, "cpus": 8, "usable": 8, "threads_per_core": 1,
        "governor": "performance", "boost": "off",
        "caches": {"L3": {"bytes": 8 << 20, "line": 64, "ways": 16, "shared_by": 8}},
    },
    "memory": {"bytes": 64 << 30, "page": 4096, "thp": "madvise", "libc": "glibc 2.36", "preloaded": False},
    "limits": {"cpus": None, "memory": None},
    "load": {"average": [0.1, 0.0, 0.0], "stolen": 0.0},
    "software": {
        "hwsim": "0.1.0", "system": "Linux", "kernel": "6.1", "python": "3.12.1", "implementation": "CPython", "numpy": "2.1.0",
        "blas": "scipy-openblas 0.3.27", "blas_core": "Haswell", "blas_threads": 8,
    },
    "variables": {},
}  # fmt: skip


def with_(part: str, **changes: Any) -> dict[str, Any]:
    return {**QUIET, part: {**QUIET[part], **changes}}


def said(seen: Observation) -> str:
    found = examine(seen)
    assert [fact.level for fact in found] == sorted((fact.level for fact in found), key=("warning", "note", "ok").index)
    for finding in found:
        assert finding.level != "warning" or (finding.why and finding.help)
    return "; ".join(finding.what for finding in found if finding.level != "ok")


def test_a_quiet_machine_with_nothing_unusual_gets_neither_warning_nor_note() -> None:
    assert said(Observation(QUIET)) == ""


@pytest.mark.parametrize(
    ("part", "change", "expected"),
    [
        ("cpu", {"virtual": True}, "this is a virtual machine"),
        ("cpu", {"governor": "powersave"}, "the CPU governor is 'powersave'"),
        ("cpu", {"boost": "on"}, "CPU boost is enabled"),
        ("cpu", {"threads_per_core": 2}, "each core runs 2 hardware threads"),
        ("cpu", {"instructions": ["avx512f"]}, "scipy-openblas 0.3.27 uses kernels for Haswell, but the CPU has avx512f"),
        ("cpu", {"usable": 1}, "this process may use 1 of 8 CPUs"),
        ("memory", {"thp": "never"}, "huge pages are disabled"),
        ("memory", {"preloaded": True}, "LD_PRELOAD is set"),
        ("limits", {"cpus": 0.5}, "the container is limited to 0.5 of 8 CPUs"),
        (
            "load",
            {"average": [99.0, 0.0, 0.0]},
            "other programs are running: load average 99 on 8 CPUs, a busy thread ran 100 % of the time",
        ),
        ("variables", {"MALLOC_ARENA_MAX": "2"}, "set: MALLOC_ARENA_MAX"),
        ("software", {"blas_core": "unknown"}, "the kernels of scipy-openblas 0.3.27 are unknown"),
    ],
)
def test_what_is_unusual_about_a_machine_is_said_and_nothing_else(part: str, change: dict[str, object], expected: str) -> None:
    assert said(Observation(with_(part, **change))) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (
            Observation(QUIET, stretch=2.0),
            "other programs are running: load average 0.1 on 8 CPUs, a busy thread ran 50 % of the time",
        ),
        (Observation(QUIET, stolen=0.05), "the hypervisor gave 5 % of the CPU time to other virtual machines"),
        (Observation(QUIET, is_plugged_in=False), "the machine runs on battery"),
        (Observation(QUIET, missing={"gpu": "no GPU"}), "the suite gpu cannot be measured: no GPU"),
        (Observation(QUIET, chase_problem="no compiler"), "the latency of caches and memory cannot be measured"),
        (Observation(QUIET, is_debug_build=True), "this Python is a debug build"),
        (Observation(QUIET, is_traced=True), "a debugger or coverage tool traces this process"),
        (Observation(QUIET, cpu_clock_step_s=0.016), "CPU time is counted in steps of 16 ms"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_disturbs_a_measurement_is_said_and_nothing_else(seen: Observation, expected: str) -> None:
    assert said(seen) == expected


@given(core=st.sampled_from(["SkylakeX", "Zen4", "Haswell", "unknown"]), wide=st.booleans())
def test_kernels_are_too_narrow_only_where_the_cpu_can_do_more(core: str, wide: bool) -> None:
    here = with_("software", blas_core=core) | {"cpu": QUIET["cpu"] | {"instructions": ["avx512f"] if wide else ["avx2"]}}
    assert ("but the CPU has" in said(Observation(here))) == (wide and core == "Haswell")


def test_findings_are_of_what_was_seen_and_of_nothing_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it runs: nothing of this machine is read."""

    def read(*_: object, **__: object) -> None:
        raise AssertionError("reads this machine")

    ways = ((os, "getloadavg cpu_count"), (time, "get_clock_info"))
    own = ((Path, "read_text"), (environment, "fingerprint"), (doctor, "stolen compile_chase suite is_plugged_in"))
    for owner, name in ((owner, name) for owner, names in (*ways, *own) for name in names.split()):
        monkeypatch.setattr(owner, name, read, raising=False)
    assert "but the CPU has" in said(Observation(with_("cpu", instructions=["avx512f"]), stolen=0.5))


def test_the_stated_machine_has_the_keys_of_a_real_one() -> None:
    here = environment.fingerprint()
    assert {part: sorted(value) for part, value in QUIET.items() if part != "variables"} == {
        part: sorted(value) for part, value in here.items() if part not in ("date", "variables")
    }


def test_the_command_prints_findings_and_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = replace(Observation(QUIET), stolen=0.05)
    monkeypatch.setattr(doctor, "observe", lambda: seen)
    shown = hwsim("calibrate", "doctor")
    assert shown.output.startswith("warning  the hypervisor gave 5 % of the CPU time to other virtual machines\n")
    found = json.loads(hwsim("calibrate", "doctor", "--json").output)
    assert found["environment"] == QUIET
    assert [finding["level"] for finding in found["findings"]] == [finding.level for finding in examine(seen)]


def test_this_machine_can_be_looked_at() -> None:
    """The one test of the real machine: any is right, as long as it is said in order."""
    seen = doctor.observe()
    assert seen.stretch > 0
    assert seen.cpu_clock_step_s > 0
    assert examine(seen)
    said(seen)
