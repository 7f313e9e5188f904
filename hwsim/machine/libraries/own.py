"""The all-reduce kernels of frameworks for inference, which replace NCCL's: every GPU reads the others' memory itself.

    one-shot      start + (n - 2) peer + (n - 1) S / (one x bus)                     each reads all that the others have
    two-shot      start + (n - 2) peer + sync + 2 (n - 1)/n S / (two x bus)          each sums its part, then reads the sums

The faster of the two, for messages of up to `largest` bytes; one-shot reads up to `reads` bytes. Longer messages, more ranks
than `ranks` and several nodes are left to NCCL. The kernel starts from a CUDA graph: the launch by a host is not in its time.

Source: vllm-project/vllm csrc/custom_all_reduce.cuh; NVIDIA/TensorRT-LLM, customAllReduceKernels.cu; sgl-project/sglang. The
constants: fitted to half of the sizes in ai-dynamo/aiconfigurator@095f58a51c4c on nine machines.
Error: docs/validation/collectives.md.
Range: one node; NVLink of generations 3 to 5, and two GPUs on PCIe. Versions differ: vLLM 0.14 to 0.24, TensorRT-LLM 1.0 to
1.3, SGLang 0.5.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, Ratio, Seconds


class Timed(NamedTuple):
    """Seconds before the bytes flow, and while they do; name: of the way."""

    name: str
    latency: float
    body: float


@dataclass(frozen=True, slots=True)
class Kernels:
    """On one generation of links."""

    start: Seconds = field("of a kernel among two, with the flags by which the ranks wait for each other")
    one: Ratio = field("part of the links' rate at which a rank reads in one shot", exclusive_minimum=0.0)
    peer: Seconds = field("for each further rank", default=0.0)
    sync: Seconds = field("of the second step of two", default=0.0)
    two: Ratio = field("part of the links' rate at which two steps move; 0: there are none", default=0.0)
    reads: Bytes = field("most bytes that a rank reads in one shot; 0: any", default=0.0)
    largest: Bytes = field("longest message; 0: any", default=0.0)
    ranks: int = field("most ranks", default=8, minimum=2)
    two_from: int = field("fewest ranks of two steps (where a switch adds: multimem)", default=2, minimum=2)

    def time(self, ranks: int, size: float, bus: float) -> Timed | None:
        """The faster way, None if there is none for this number of ranks or bytes.

        >>> kernels = Kernels(start=4e-6, one=0.5, sync=4e-6, two=0.5)
        >>> [kernels.time(8, size, 400e9).name for size in (1e3, 1e6)]
        ['one-shot', 'two-shot']
        """
        if ranks > self.ranks or (self.largest and size > self.largest):
            return None
        two = self.two if ranks >= self.two_from else 0.0
        start = self.start + (ranks - 2) * self.peer
        ways = []
        read = (ranks - 1) * size
        if not self.reads or read <= self.reads:
            ways.append(Timed("one-shot", start, read / (self.one * bus)))
        if two:
            ways.append(Timed("two-shot", start + self.sync, 2 * (ranks - 1) / ranks * size / (two * bus)))
        return min(ways, key=lambda way: math.fsum(way[1:]), default=None)


@dataclass(frozen=True, slots=True)
class Own:
    """The kernels of one framework; a part of the library in machines/parts/own."""

    kind: ClassVar[str] = "own"

    links: Mapping[str, Kernels] = field("kind and generation of links (nvlink3, nvlink4, nvlink5, pcie) -> its kernels there")
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # key -> where from

    def on(self, link: str, generation: int) -> tuple[str, Kernels] | None:
        """The kernels on links of a generation, or of the nearest that was measured; None if there are none for the kind."""
        generations = {name: int(name.removeprefix(link) or 0) for name in self.links if name.rstrip("0123456789") == link}
        if not generations:
            return None
        name = min(generations, key=lambda each: (abs(generations[each] - generation), each))
        return name, self.links[name]
