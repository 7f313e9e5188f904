"""Calls of PyTorch while a script is recorded: every operator that it dispatches, forward, backward and of the optimizer.

A dispatch mode sees them below autograd, on whatever thread they are made. Each is timed by the thread's own time. Views and
empty arrays are no calls: what they take is the host's. It is imported only for scripts that import PyTorch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from hwsim_calibrate.recording.tape import Tape
from hwsim_calibrate.recording.torch_calls import changed, described, free, tensors

FOLDER: Final = str(Path(torch.__file__).parent)
THREADS: Final = "OMP_NUM_THREADS"
ELSEWHERE: Final = "hwsim records PyTorch on a CPU, or its shapes with --fake; on a GPU profile it, and `hwsim import kineto`"


class Recorder(TorchDispatchMode):
    """Every operator on a tape.

    fake: arrays are shapes without memory: nothing is computed, and nothing timed.
    """

    def __init__(self, tape: Tape, *, fake: bool = False) -> None:
        super().__init__()
        self.tape, self.fake = tape, fake

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options, tape = dict(kwargs or {}), self.tape
        if not self.fake and any(tensor.device.type == "cuda" for tensor in tensors([*args, *options.values()])):
            raise NotImplementedError(ELSEWHERE)
        if tape.inside or free(func):
            result = func(*args, **options)
            for each in () if tape.inside or func.is_view else tensors(result):
                tape.forget(each)
            return result
        name = func._schema.name.removeprefix("aten::")  # noqa: SLF001 (the only place that names it)
        changes = () if tape.only_times else changed(func, args, options)
        return tape.perform(described(func), name, func, args, options, changes=changes)


@contextmanager
def recording_torch(tape: Tape, *, fake: bool = False) -> Iterator[Tape]:
    """Record PyTorch's calls; on one thread, unless the environment says how many."""
    tape.silent = tape.silent if FOLDER in tape.silent else (*tape.silent, FOLDER)
    with ExitStack() as modes:
        modes.enter_context(one_thread())
        if fake:
            modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        modes.enter_context(Recorder(tape, fake=fake))
        yield tape


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread computes, unless the environment says how many."""
    before = torch.get_num_threads()
    if THREADS not in os.environ:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads() -> int:
    """Threads that PyTorch computes with while it is recorded."""
    return int(torch.get_num_threads()) if THREADS in os.environ else 1
