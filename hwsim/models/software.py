"""What a framework adds to the kernels of a network: bytes it does not fuse away, and the host's time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """A framework with its libraries.

    Args:
        moved: bytes that norms, activations and the like move, over those of one kernel for each layer; fusing saves some.
        dispatch: seconds of the host for each kernel; the GPU waits where that is longer than the kernels.
        casting: dispatch in 16 bit over that in 32, where the framework converts numbers with kernels of their own.
        number: seconds of the host for each number of an input: made ready and handed over while the GPU works on those before.
        step: seconds of a step that neither overlaps: data handed over, the loss looked at.
        waits: the same of a batch of inference.
        gradient: bytes of a gradient that is sent.
        array: seconds of the host for each array of gradients that is exchanged: buckets filled, norms and scales looked at.
        hidden: part of the backward pass behind which gradients can be sent.
    """

    moved: float = 1.0
    dispatch: float = 0.0
    casting: float = 1.0
    number: float = 0.0
    step: float = 0.0
    waits: float = 0.0
    gradient: float = 4.0
    array: float = 0.0
    hidden: float = 1.0


# **Source**: fitted to published throughput, half of the rows: see `calibrate/published/cnn_training.py` and `cnn_inference.py`;
# a `step` of 2 ms and the dispatch of frameworks that no small batch was measured with are guesses.
SOFTWARE: Final[Mapping[str, Software]] = {
    "none": Software(),  # kernels alone: what arithmetic on paper has
    "tensorflow-1": Software(dispatch=10e-6, step=28e-3, array=35e-6),
    "pytorch-1": Software(dispatch=30e-6, step=30e-3),
    "pytorch-ngc": Software(moved=1.07, dispatch=50e-6, casting=1.27, step=2e-3, waits=1.2e-3, array=60e-6),
    "mxnet-ngc": Software(moved=0.59, dispatch=10e-6, step=2e-3, waits=1.2e-3, array=10e-6),
    "tensorflow-ngc": Software(moved=1.31, dispatch=24e-6, number=2e-9, step=2e-3, waits=1.4e-3, array=30e-6),
    # Python issues every op, as the text's loop of additions does: 42 us each (d2l 13.2); nothing else is known of it.
    "mxnet-eager": Software(dispatch=42e-6, array=42e-6),
    "tensorflow-xla": Software(moved=0.83, dispatch=22e-6, number=1.75e-9, step=2e-3, waits=2.6e-3, array=30e-6),
}
