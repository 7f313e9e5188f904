"""A network between nodes, as NCCL and RCCL use it: what `nccl` measures within a node lacks.

    a step between nodes takes `ll`, `ll128` or `simple`, by protocol; long messages reach `network` of the bandwidth

The time of a step belongs to the transport (InfiniBand verbs, RoCE, libfabric on EFA or Slingshot, GPUDirect-TCPXO) and hardly
depends on the GPU: between two nodes, a small all-reduce takes 20 to 40 us over InfiniBand or RoCE, 50 to 170 us over EFA.

Source: fitted to collectives of two nodes (`calibrate/published/fabrics.py`), a file for each network in machines/parts/fabric.
Error: docs/validation/collectives.md; a network without measurements has the middle of the others, and a factor of 3 either way.
Range: two nodes and one crossbar; congestion of large networks is not included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.units import Ratio, Seconds


@dataclass(frozen=True, slots=True)
class Fabric:
    """The constants of a network for NCCL and RCCL; parts of the library are in machines/parts/fabric."""

    kind: ClassVar[str] = "fabric"

    ll: Seconds = field("time of a step between nodes by protocol LL")
    ll128: Seconds = field("time of a step between nodes by protocol LL128")
    simple: Seconds = field("time of a step between nodes by protocol Simple")
    network: Ratio = field("fraction of network bandwidth that long messages reach", exclusive_minimum=0.0)
    tree: Ratio = field("fraction of the link bandwidth that the double tree reaches; 0: no tree", default=0.0)
    sources: Mapping[str, Origin] = dataclasses.field(default_factory=dict, init=False, repr=False)  # source of each key
