"""What the copy engines of a GPU take, and the other ways to move bytes into it and out of it.

    by DMA, out of the GPU      setup + bytes / link
    by DMA, into the GPU        setup + fetch + bytes x fill / (bytes + fill) / link + bytes / (fetches x link)
    from pageable memory        + a core that copies to a pinned buffer: bytes / pageable at least
    by the GPU's own cores      bytes / kernel_host or kernel_peer at least
    by a core of the CPU        store_setup, or bytes / stores if that is longer, and the core is held
    inside one GPU              local_setup + 2 x bytes / (local x memory bandwidth)

An engine that reads host memory has a round trip more to go than one that writes (`fetch`), and a link has only so many reads
under way (its `fetches`); while the first of them come in, less than the link's bandwidth is used (`fill`).

**Source**: NVIDIA, "CUDA C++ Best Practices Guide", 10.1 (pinned and pageable copies); PCI Express Base Specification 2.2.9
(reads are requests and completions).  Figures: each part's own.
**Error**: V100 over PCIe 3.0, 1 kB to 68 MB pinned, half of the sizes fitted: see the report of the published copies.
**Range**: one copy at a time on each engine; pageable rates depend on the host's core and on the pages being there already.
"""

from __future__ import annotations

from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Bytes, BytesPerSecond, Ratio, Seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """The defaults are the ideal: no setup, all of what the links carry."""

    setup: Seconds = field("of a copy by its engines, before the first byte", default=0.0)
    fetch: Seconds = field("more of one that reads the host's memory: the way there and back", default=0.0)
    waited: Seconds = field("more where the program waits for it (cudaMemcpy)", default=0.0)
    fill: Bytes = field("bytes over which reads of the host's memory get up to speed", default=0.0)
    local_setup: Seconds = field("of a copy inside its memory", default=0.0)
    local: Ratio | None = field(
        "part of the memory's bandwidth that a copy inside it reaches (default: `sustained.copy`)",
        default=None,
        exclusive_minimum=0.0,
    )
    pageable: BytesPerSecond | None = field(
        "of a copy from or to pageable host memory; as fast as pinned if left out", default=None, exclusive_minimum=0.0
    )
    kernel_host: BytesPerSecond | None = field("of a copy kernel from or to the host", default=None, exclusive_minimum=0.0)
    kernel_peer: BytesPerSecond | None = field("of a copy kernel from or to another GPU", default=None, exclusive_minimum=0.0)
    store_setup: Seconds = field("the least that a copy by a core of the CPU takes", default=0.0)
    stores: BytesPerSecond | None = field("of a core of the CPU that writes into its memory", default=None, exclusive_minimum=0.0)
