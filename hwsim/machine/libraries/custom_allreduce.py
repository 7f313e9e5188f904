"""Custom all-reduce kernels of inference frameworks, which replace NCCL: each GPU reads the memory of its peers directly.

    one-shot      start + (n - 2) peer + (n - 1) S / (one x bus)                     each rank reads the arrays of its peers
    two-shot      start + (n - 2) peer + sync + 2 (n - 1)/n S / (two x bus)          each rank sums its part, then reads the sums

n: ranks.  S: bytes.  The faster of the two is used for messages of up to `largest` bytes, one-shot only if a rank reads at most
`reads` bytes. NCCL handles longer messages, more ranks than `ranks`, and several nodes. The kernel starts from a CUDA graph, so
that its time does not include a launch by the host.

Source: vllm-project/vllm csrc/custom_all_reduce.cuh; NVIDIA/TensorRT-LLM, customAllReduceKernels.cu; sgl-project/sglang.
Constants: fitted to half of the sizes in ai-dynamo/aiconfigurator@095f58a51c4c on nine machines.
Error: docs/validation/collectives.md.
Range: one node; NVLink of generations 3 to 5, and two GPUs on PCIe. Versions differ: vLLM 0.14 to 0.24, TensorRT-LLM 1.0 to
1.3, SGLang 0.5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Ratio, Seconds


class AllReduceTime(NamedTuple):
    """A time of one algorithm (s): `latency` before the transfer, `body` during it."""

    name: str
    latency: float
    body: float


@dataclass(frozen=True, slots=True)
class AllReduceKernels:
    """The constants of custom all-reduce kernels on one generation of links."""

    start: Seconds = field("time of the kernel on two ranks without data, including the flags that synchronize the ranks")
    one: Ratio = field("fraction of the link bandwidth that one-shot reads reach", exclusive_minimum=0.0)
    peer: Seconds = field("additional time of each further rank", default=0.0)
    sync: Seconds = field("additional time of the second step of two-shot", default=0.0)
    two: Ratio = field("fraction of the link bandwidth that two-shot reaches; 0: no two-shot kernel", default=0.0)
    reads: Bytes = field("maximum bytes that a rank reads in one-shot; 0: unlimited", default=0.0)
    largest: Bytes = field("maximum message size; 0: unlimited", default=0.0)
    ranks: int = field("maximum number of ranks", default=8, minimum=2)
    two_from: int = field("minimum number of ranks for two-shot (for multimem, if the switch reduces)", default=2, minimum=2)

    def time(self, ranks: int, size: float, bus: float) -> AllReduceTime | None:
        """Return the time of the faster algorithm; None if none supports this number of ranks or bytes.

        >>> kernels = AllReduceKernels(start=4e-6, one=0.5, sync=4e-6, two=0.5)
        >>> [kernels.time(8, size, 400e9).name for size in (1e3, 1e6)]
        ['one-shot', 'two-shot']
        """
        if ranks > self.ranks or (self.largest and size > self.largest):
            return None
        two = self.two if ranks >= self.two_from else 0.0
        start = self.start + (ranks - 2) * self.peer
        times = []
        read = (ranks - 1) * size
        if not self.reads or read <= self.reads:
            times.append(AllReduceTime("one-shot", start, read / (self.one * bus)))
        if two:
            times.append(AllReduceTime("two-shot", start + self.sync, 2 * (ranks - 1) / ranks * size / (two * bus)))
        return min(times, key=lambda time: time.latency + time.body, default=None)


@dataclass(frozen=True, slots=True)
class CustomAllReduce:
    """The custom all-reduce kernels of one framework; parts of the library are in machines/parts/own."""

    kind: ClassVar[str] = "own"

    links: Mapping[str, AllReduceKernels] = field("constants by kind and generation of links: nvlink3, nvlink4, nvlink5, pcie")
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # source of each key

    def on(self, link: str, generation: int) -> tuple[str, AllReduceKernels] | None:
        """Return name and constants for a link generation, or for the nearest measured one; None if the kind has none."""
        generations = {name: int(name.removeprefix(link) or 0) for name in self.links if name.rstrip("0123456789") == link}
        if not generations:
            return None
        name = min(generations, key=lambda name: (abs(generations[name] - generation), name))
        return name, self.links[name]
