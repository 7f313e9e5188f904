"""Fit a machine file to measurements. Each number has an interval and its number of measured calls.

- kernels: the table `kernels` of the CPU from numpy calls. model: its formula. least_squares: the solver. corrections: residuals.
- cpu: the CPU.
- gpu: the GPU and its error for held-out cases, with gpu_memory, gpu_copies and gpu_products. gpu_rows: predictions of its cases.
- holdout: errors for held-out sizes. machine_file: the fitted machine as YAML.

fitted = fit(measurements, name="here")
Path("here.yaml").write_text(fitted.yaml())
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hwsim.spec import SpecError
from hwsim_calibrate.fit.cpu import cpu_part
from hwsim_calibrate.fit.gpu import fit_gpu
from hwsim_calibrate.fit.holdout import HeldOut, held_out
from hwsim_calibrate.fit.kernels import FittedKernels, among_others, capacities_of, fit_kernels, page_faults, timed_calls
from hwsim_calibrate.fit.machine_file import text
from hwsim_calibrate.store import Measurements

BUS: Final = {"value": "100 GB/s", "source": "guess", "ref": "assumed, so that the link is not the bottleneck of the GPU"}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted machine.

    Args:
        name: name of the machine.
        machine: content of the machine file.
        kernels: the CPU's table with its intervals.
        heldout: errors at sizes that are held out of a second fit.
        gpu: group of GPU cases -> errors at held-out cases.
    """

    name: str
    machine: Mapping[str, Any]
    kernels: FittedKernels | None = None
    heldout: HeldOut | None = None
    gpu: Mapping[str, HeldOut] = field(default_factory=dict)

    def yaml(self) -> str:
        """Return the machine file."""
        return text(self.machine)


def fit(measurements: Measurements, *, name: str, seed: int = 0) -> Fitted:
    """Fit a machine to measurements: a CPU with its kernels, and a GPU if one was measured.

    Raises:
        SpecError: The measurements contain no numpy calls.
    """
    rows = timed_calls(measurements)
    if len(rows) < 3:
        raise SpecError.of(None, "the measurements contain no numpy calls", "measure the suite `kernels`")
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
    accuracy = f"{len(rows)} single-thread numpy calls{busy}. Held-out sizes: {heldout}"
    machine: dict[str, Any] = {"hwsim": "machine/1", "name": name, "notes": accuracy, "parts": parts}
    return Fitted(name, machine | ({"links": links} if links else {}), kernels, heldout, gpu.heldout)


def library(measurements: Measurements) -> str:
    """Return the versions of numpy and its BLAS library."""
    software = measurements.environment.get("software", {})
    words = (f"numpy {software.get('numpy', '')}".strip(), str(software.get("blas", "")), str(software.get("blas_core", "")))
    return ", ".join(word for word in words if word)


def reference(measurements: Measurements) -> str:
    """Return the source of the fitted numbers in one line."""
    date = str(measurements.environment.get("date", ""))[:10]
    rounds = sorted(len(row.seconds) for row in measurements.rows)
    middle = rounds[len(rounds) // 2] if rounds else 0
    return f"hwsim calibrate, {date or 'undated'}: {len(measurements.rows)} cases, {middle} rounds, minimum CPU time of a thread"


__all__ = ["Fitted", "fit"]
