"""Number formats of a model that its GPUs have no units for: they compute in the next wider one, which a framework may refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.devices import Gpu
from hwsim.devices.roofline import CannotCompute, peak_of
from hwsim.machine import Machine, UnknownName
from hwsim.machine.placed import PlacedDevice
from hwsim.spec import Place, Tree, Warning
from hwsim.workload.file import Job, Workload


def wider(peaks: Mapping[str, float], dtype: str, place: Place | None = None, gpu: str = "the gpu") -> Iterator[Warning]:
    """A warning where products of this format are computed in a wider one; none where the GPU has it, or has no rate at all.

    >>> [warning.code for warning in wider({"fp16": 1e12}, "fp8")], list(wider({"fp8": 1e12}, "fp8")), list(wider({}, "fp8"))
    (['wider-format'], [], [])
    """
    try:
        used, _ = peak_of(peaks, dtype, gpu)
    except CannotCompute:
        return
    if used != dtype:
        text = f"{gpu} has no {dtype}: its products take as long as in {used}, and arrays are as large as in {dtype}"
        yield Warning("wider-format", f"{text}; a framework may refuse it", place)


def wider_formats(workload: Workload, machine: Machine) -> Iterator[Warning]:
    """A warning for each model whose format some of its own GPUs lack."""
    for part in workload.parts:
        for written in part.doors.values():
            if isinstance(written, Tree):
                yield from _wider(part.on_devices(written) if isinstance(part, Job) else written, machine)


def _wider(tree: Tree, machine: Machine) -> Iterator[Warning]:
    dtype = tree.get("dtype")
    if dtype is not None and isinstance(dtype.value, str):
        peaks = {sample.name: sample.model.flop for sample in _samples(tree, machine) if isinstance(sample.model, Gpu)}
        lacking = [name for name, rates in peaks.items() if dtype.value not in rates]
        for name in lacking[:1]:
            yield from wider(peaks[name], dtype.value, dtype.place, "the gpu" if len(lacking) == len(peaks) else name)


def _samples(tree: Tree, machine: Machine) -> tuple[PlacedDevice, ...]:
    """A device of each part that a model runs on; none where a name is wrong, which is a mistake of its own."""
    split = tree.get("split")
    parts = [tree] if split is None else [part for _, part in split.items()]
    named = [element.value for part in parts if (device := part.get("device")) is not None for element in device.elements()]
    try:
        texts = [each for each in named if isinstance(each, str)]
        return machine.samples(machine.select(texts) if texts else machine.devices_of("gpu"))
    except UnknownName:
        return ()
