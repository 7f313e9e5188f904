"""Measurements -> a machine file, each number with its interval and how many measured calls it rests on.

- kernels: the table `kernels` of the cpu from calls of numpy; model: its formula, solve: the solver, corrections: the rest.
- parts: the cpu.
- gpu: a GPU and its error at rows held out; gpu_rows: its rows as the models predict them; gpu_memory, gpu_copies, gpu_products.

fitted = fit(measurements, name="here")
Path("here.yaml").write_text(fitted.yaml())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hwsim.spec import SpecError
from hwsim_calibrate.fit.gpu import fit_gpu
from hwsim_calibrate.fit.heldout import HeldOut, held_out
from hwsim_calibrate.fit.kernels import FittedKernels, among_others, capacities_of, fit_kernels, page_faults, timed
from hwsim_calibrate.fit.parts import cpu_part
from hwsim_calibrate.fit.writing import text
from hwsim_calibrate.store import Measurements

BUS: Final = {"value": "100 GB/s", "source": "guess", "ref": "so that the GPU, as it was measured, is what limits"}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted machine.

    Args:
        machine: content of its file.
        kernels: the table of the cpu with its intervals.
        heldout: the error at sizes that a fit of the others had not seen.
        gpu: the same for the rows of a GPU, by group.
    """

    name: str
    machine: Mapping[str, Any]
    kernels: FittedKernels | None = None
    heldout: HeldOut | None = None
    gpu: Mapping[str, HeldOut] = field(default_factory=dict)

    def yaml(self) -> str:
        """The machine file."""
        return text(self.machine)


def fit(measurements: Measurements, *, name: str, seed: int = 0) -> Fitted:
    """A machine from its measurements: a cpu with its kernels, and a gpu where one was measured.

    Raises:
        SpecError: the file has no calls of numpy.
    """
    rows = timed(measurements)
    if len(rows) < 3:
        raise SpecError.of(None, "no calls of numpy were measured", "measure the suite `kernels`")
    capacities, ref = capacities_of(measurements), reference(measurements)
    kernels = among_others(fit_kernels(rows, capacities, library=library(measurements), seed=seed), measurements, seed=seed)
    kernels = page_faults(kernels, measurements)
    heldout = held_out(rows, capacities, seed=seed)
    parts: dict[str, Any] = {"cpu": cpu_part(kernels, measurements, ref)}
    links: list[dict[str, Any]] = []
    gpu = fit_gpu(measurements, ref, seed)
    if gpu.part:
        parts["gpu"] = gpu.part
        links.append(gpu.link or {"name": "pcie", "between": ["cpu", "gpu"], "kind": "direct", "bandwidth": BUS})
    load = measurements.environment.get("load", {}).get("average", [])
    busy = f"; load average {load[0]:g}" if load else ""
    accuracy = f"{len(rows)} calls of numpy on one thread{busy}. Sizes held out: {heldout}"
    machine: dict[str, Any] = {"hwsim": "machine/1", "name": name, "notes": accuracy, "parts": parts}
    return Fitted(name, machine | ({"links": links} if links else {}), kernels, heldout, gpu.heldout)


def library(measurements: Measurements) -> str:
    """numpy and the library that multiplies its matrices, by version."""
    software = measurements.environment.get("software", {})
    words = (f"numpy {software.get('numpy', '')}".strip(), str(software.get("blas", "")), str(software.get("blas_core", "")))
    return ", ".join(word for word in words if word)


def reference(measurements: Measurements) -> str:
    """The source of the numbers, in a line."""
    date = str(measurements.environment.get("date", ""))[:10]
    rounds = sorted(len(row.seconds) for row in measurements.rows)
    middle = rounds[len(rounds) // 2] if rounds else 0
    return f"hwsim calibrate, {date or 'undated'}: {len(measurements.rows)} cases, {middle} rounds, lowest CPU time of a thread"


__all__ = ["Fitted", "fit"]
