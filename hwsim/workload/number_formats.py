"""Warnings for number formats without hardware support: the GPU computes in the next wider format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.devices import Gpu
from hwsim.devices.roofline import CannotCompute, peak_of
from hwsim.machine import Machine, UnknownName
from hwsim.machine.contents import PlacedDevice
from hwsim.spec import Place, Tree, Warning
from hwsim.workload.file import Job, Workload


def wider(peaks: Mapping[str, float], dtype: str, place: Place | None = None, gpu: str = "the gpu") -> Iterator[Warning]:
    """Yield a warning if matmuls of this format are computed in a wider one; none if the GPU supports it or states no rates.

    >>> [warning.code for warning in wider({"fp16": 1e12}, "fp8")], list(wider({"fp8": 1e12}, "fp8")), list(wider({}, "fp8"))
    (['unsupported-format'], [], [])
    """
    try:
        used, _ = peak_of(peaks, dtype, gpu)
    except CannotCompute:
        return
    if used != dtype:
        text = f"{gpu} does not support {dtype}: matmuls run at the rate of {used}, with arrays of {dtype} size"
        yield Warning("unsupported-format", f"{text}; frameworks may reject the format", place)


def wider_formats(workload: Workload, machine: Machine) -> Iterator[Warning]:
    """Yield a warning for each model whose format one of its GPUs does not support."""
    for part in workload.parts:
        for tree in part.doors.values():
            if isinstance(tree, Tree):
                yield from _wider(part.on_devices(tree) if isinstance(part, Job) else tree, machine)


def _wider(tree: Tree, machine: Machine) -> Iterator[Warning]:
    dtype = tree.get("dtype")
    if dtype is not None and isinstance(dtype.value, str):
        peaks = {sample.name: sample.model.flop for sample in _samples(tree, machine) if isinstance(sample.model, Gpu)}
        lacking = [name for name, rates in peaks.items() if dtype.value not in rates]
        for name in lacking[:1]:
            yield from wider(peaks[name], dtype.value, dtype.place, "the gpu" if len(lacking) == len(peaks) else name)


def _samples(tree: Tree, machine: Machine) -> tuple[PlacedDevice, ...]:
    """One device of each part that a model runs on; none if a name is unknown, which another check reports."""
    split = tree.get("split")
    parts = [tree] if split is None else [part for _, part in split.items()]
    names = [element.value for part in parts if (device := part.get("device")) is not None for element in device.elements()]
    try:
        texts = [name for name in names if isinstance(name, str)]
        return machine.samples(machine.select(texts) if texts else machine.devices_of("gpu"))
    except UnknownName:
        return ()
