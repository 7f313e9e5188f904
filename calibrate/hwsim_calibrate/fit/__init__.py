"""Measurements -> a machine file, each number with its interval and how many measured calls spoke of it.

kernels     calls of numpy: the table `kernels` of the cpu        (model: the formula; solve: the solver; corrections)
storage     a disk: time of an access, bandwidth, accesses side by side
network     a link: latency, bandwidth, in pieces by size          (piecewise)
gpu         launches, memory, L2, copies, products
tables      the same from what other tools print: nccl-tests, fio, OSU

fitted = fit(measurements, name="here")
Path("here.yaml").write_text(fitted.yaml())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hwsim.spec import Mistake, SpecError
from hwsim_calibrate.fit.cpu import cpu_part
from hwsim_calibrate.fit.gpu import gpu_part
from hwsim_calibrate.fit.heldout import HeldOut, held_out
from hwsim_calibrate.fit.io import disk_part, network_notes
from hwsim_calibrate.fit.kernels import FittedKernels, among_others, capacities_of, fit_kernels, page_faults, timed
from hwsim_calibrate.fit.writing import text
from hwsim_calibrate.store import Measurements

BUS: Final = {"value": "100 GB/s", "source": "guess", "ref": "so that the disk, as it was measured, is what limits"}
BUS_NOTE: Final = "what the disk hangs on was not measured apart from it"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted machine.

    machine: what its file says.  kernels: the table of the cpu with its intervals, if kernels were measured.
    heldout: the error at sizes that a fit of the others had not seen.
    """

    name: str
    machine: Mapping[str, Any]
    kernels: FittedKernels | None = None
    heldout: HeldOut | None = None
    head: tuple[str, ...] = field(default=())

    def yaml(self) -> str:
        """The machine file."""
        return text(self.machine, self.head)


def fit(measurements: Measurements, *, name: str, seed: int = 0) -> Fitted:
    """A machine from its measurements: a cpu with its kernels, and a disk, a network card and a gpu where those were measured.

    Raises:
        SpecError: nothing in the file speaks of a cpu.
    """
    rows = timed(measurements)
    if len(rows) < 3:
        raise SpecError([Mistake(None, "no calls of numpy were measured", "measure the suite `kernels`")])
    capacities = capacities_of(measurements)
    found = among_others(fit_kernels(rows, capacities, library=library(measurements), seed=seed), measurements, seed=seed)
    found = page_faults(found, measurements)
    heldout = held_out(rows, capacities, seed=seed)
    ref = reference(measurements)
    parts: dict[str, Any] = {"cpu": cpu_part(found, measurements, ref)}
    links: list[dict[str, Any]] = []
    disk = disk_part(measurements, ref)
    if disk:
        parts["disk"] = disk
        links.append({"name": "bus", "between": ["cpu", "disk"], "kind": "direct", "bandwidth": BUS, "notes": BUS_NOTE})
    gpu, link = gpu_part(measurements, ref)
    if gpu:
        parts["gpu"] = gpu
        links.append(link or {"name": "pcie", "between": ["cpu", "gpu"], "kind": "direct", "bandwidth": BUS})
    told = [notes(measurements, heldout, len(rows)), network_notes(measurements)]
    machine: dict[str, Any] = {"hwsim": "machine/1", "name": name, "notes": "; ".join(each for each in told if each)}
    return Fitted(name, machine | {"parts": parts} | ({"links": links} if links else {}), found, heldout)


def library(measurements: Measurements) -> str:
    """numpy and what multiplies its matrices, by version."""
    said = measurements.environment.get("software", {})
    words = (
        f"numpy {said['numpy']}" if said.get("numpy") else "numpy",
        str(said.get("blas", "")),
        str(said.get("blas_core", "")),
    )
    return ", ".join(word for word in words if word)


def reference(measurements: Measurements) -> str:
    """Where the numbers are from, in a line."""
    date = str(measurements.environment.get("date", ""))[:10]
    rounds = sorted(len(row.seconds) for row in measurements.rows)
    middle = rounds[len(rounds) // 2] if rounds else 0
    return f"hwsim calibrate, {date or 'undated'}: {len(measurements.rows)} cases, {middle} rounds, lowest CPU time of a thread"


def notes(measurements: Measurements, heldout: HeldOut, cases: int) -> str:
    """How well it is known: the error at sizes held out, and how busy the machine was."""
    load = measurements.environment.get("load", {}).get("average", [])
    busy = f"; load average {load[0]:g}" if load else ""
    return f"{cases} calls of numpy on one thread{busy}. Sizes held out: {heldout}"


__all__ = ["Fitted", "fit"]
