"""Recording of all PyTorch operators that a script dispatches in forward, backward and optimizer.

A dispatch mode receives the operators below autograd. Each operator is timed on its thread. Views and empty tensors are not
recorded, because their time is host time. This module is imported only for scripts that use PyTorch.
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
from hwsim_calibrate.recording.torch_calls import changed_tensors, describe_operator, is_free, tensors

FOLDER: Final = str(Path(torch.__file__).parent)
THREADS: Final = "OMP_NUM_THREADS"
NO_GPU: Final = "`hwsim record` supports PyTorch on a CPU, or --fake. For a GPU, profile the script and use `hwsim import kineto`"


class Recorder(TorchDispatchMode):
    """A dispatch mode that records every operator on a tape.

    Args:
        tape: the tape.
        fake: whether tensors have no memory, and nothing is computed or timed.
    """

    def __init__(self, tape: Tape, *, fake: bool = False) -> None:
        super().__init__()
        self.tape, self.fake = tape, fake

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options, tape = dict(kwargs or {}), self.tape
        if not self.fake and any(tensor.device.type == "cuda" for tensor in tensors([*args, *options.values()])):
            raise NotImplementedError(NO_GPU)
        if tape.inside or is_free(func):
            result = func(*args, **options)
            for tensor in () if tape.inside or func.is_view else tensors(result):
                tape.forget(tensor)
            return result
        name = func._schema.name.removeprefix("aten::")  # noqa: SLF001 (no public access)
        changes = () if tape.only_times else changed_tensors(func, args, options)
        return tape.perform(describe_operator(func), name, func, args, options, changes=changes)


@contextmanager
def recording_torch(tape: Tape, *, fake: bool = False) -> Iterator[Tape]:
    """Record PyTorch operators; use one thread unless OMP_NUM_THREADS is set."""
    tape.silent = tape.silent if FOLDER in tape.silent else (*tape.silent, FOLDER)
    with ExitStack() as modes:
        modes.enter_context(one_thread())
        if fake:
            modes.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        modes.enter_context(Recorder(tape, fake=fake))
        yield tape


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread unless OMP_NUM_THREADS is set."""
    before = torch.get_num_threads()
    if THREADS not in os.environ:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads() -> int:
    """Return the number of PyTorch threads while a script is recorded."""
    return int(torch.get_num_threads()) if THREADS in os.environ else 1
