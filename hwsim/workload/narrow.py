"""Number formats of a model that its GPUs have no units for: they compute in the next wider one, which a framework may refuse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hwsim.devices import Gpu
from hwsim.devices.roofline import CannotCompute, peak_of
from hwsim.machine import Machine
from hwsim.spec import Place, Warning
from hwsim.workload.file import Workload


def wider(peaks: Mapping[str, float], dtype: str, place: Place | None = None) -> Iterator[Warning]:
    """A warning where products of this format are computed in a wider one; none where the GPU has it, or has no rate at all.

    >>> [warning.code for warning in wider({"fp16": 1e12}, "fp8")], list(wider({"fp8": 1e12}, "fp8")), list(wider({}, "fp8"))
    (['wider-format'], [], [])
    """
    try:
        used, _ = peak_of(peaks, dtype, "the gpu")
    except CannotCompute:
        return
    if used != dtype:
        text = f"the gpu has no {dtype}: its products take as long as in {used}, and arrays are as large as in {dtype}"
        yield Warning("wider-format", f"{text}; a framework may refuse it", place)


def wider_formats(workload: Workload, machine: Machine) -> Iterator[Warning]:
    """A warning for each training and served model whose format none of the machine's GPUs has."""
    models = [machine.device(name).model for name in machine.devices_of("gpu")]
    peaks = [model.flop for model in models if isinstance(model, Gpu)]
    jobs = (workload.jobs or {}).values()
    for tree in (workload.train, workload.infer, *(job.train for job in jobs), *(job.infer for job in jobs)):
        dtype = None if tree is None or not tree.is_mapping else tree.get("dtype")
        if dtype is not None and isinstance(dtype.value, str) and not any(dtype.value in each for each in peaks):
            for each in peaks[:1]:
                yield from wider(each, dtype.value, dtype.place)
