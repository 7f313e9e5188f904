"""NCCL's choice of an algorithm: latency and bandwidth for every algorithm and protocol; the minimum time wins.

    time = latency + size / bandwidth

The ranking is good, but the times are rough: within 2 % of measured all-reduces of 1 GiB and more on 8 H200, 20 % too fast at
64 MiB, and 40 to 60 % too fast below 16 MiB (kernel start is not included). Use it to choose; `nccl` times.

Source: NVIDIA NCCL, src/graph/tuning.cc, topo.h, search.cc and connect.cc at commit 5067397c2676 (2026); the tables keep its
units, us and GB/s.
Range: without CollNet and PAT (they need plugins or one GPU per node). A cloud's tuner plugin may choose otherwise: the plugin on
AWS p6-b200 takes NVLS for 6 GPUs, while these tables choose ring.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.machine.libraries.nccl import PROTOCOLS, Method, Protocol
from hwsim.machine.libraries.operations import CannotCollect, Operation, RankGroup
from hwsim.records import dataclass

Generation = Literal["volta", "ampere", "hopper", "blackwell"]
OPERATIONS: Final[tuple[Operation, ...]] = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")

_Three = tuple[float, float, float]  # for LL, LL128, Simple; or for 1, 2 and more nodes


@functools.cache
def _tables() -> Mapping[str, Any]:
    """Return the tables of NCCL's source by name, as described in `nccl_tables.json`."""
    tables: Mapping[str, Any] = json.loads(Path(__file__).with_name("nccl_tables.json").read_text(encoding="utf-8"))
    return tables


_START: Final[Mapping[str, _Three]] = _tables()["start"]
_STEP: Final[Mapping[str, Mapping[str, _Three]]] = _tables()["step"]
_LL_ONE_NODE: Final[Mapping[str, float]] = _tables()["ll_one_node"]
_LL_NODES: Final[Mapping[str, tuple[float, float]]] = _tables()["ll_nodes"]
_RING_LL128: Final[Mapping[str, float]] = _tables()["ring_ll128"]
_TREE_LL128: Final[Mapping[str, _Three]] = _tables()["tree_ll128"]
_TREE: Final[Mapping[str, _Three]] = _tables()["tree"]
_NVLS_TREE: Final[Mapping[str, _Three]] = _tables()["nvls_tree"]
_NVLS: Final[Mapping[str, float]] = _tables()["nvls"]
_TREE_LEFT: Final[Mapping[str, Sequence[float]]] = _tables()["tree_left"]
_INSIDE: Final[Mapping[str, Sequence[float]]] = _tables()["inside"]
_ACROSS: Final[Mapping[str, Sequence[float]]] = _tables()["across"]
NVLINK: Final[Mapping[str, float]] = _tables()["nvlink"]  # GB/s of one link
PCIE: Final = 12.0  # GB/s of PCIe 3.0 x16; other links are scaled
_SEARCHED: Final = 16  # maximum channels of the search
_PIPELINES: Final = 32  # maximum channels after doubling
_HEADS: Final = 32  # maximum head GPUs of an NVLS reduction (NCCL_MAX_NVLS_ARITY), for any number of ranks


@dataclass(frozen=True, slots=True)
class Channels:
    """The number of rings (channels), and the bandwidth of each within a node and across nodes (GB/s)."""

    count: int
    inside: float
    across: float


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware as NCCL detects it.

    Args:
        inside: bandwidth of a GPU to the other GPUs of its node, per direction (GB/s), as NCCL counts it (`NVLINK` x links).
        link: kind of these links.
        nics: NICs per node.
        nic: bandwidth of a NIC (GB/s).
        nvls: whether the switch between the GPUs reduces.
    """

    generation: Generation
    inside: float
    link: Literal["nvlink", "pcie"] = "nvlink"
    nics: int = 0
    nic: float = 0.0
    cpu: Literal["intel", "amd"] = "intel"
    nvls: bool = False

    def channels(self, group: RankGroup) -> Channels:
        """Return the rings of NCCL's search, after it doubles few fast ones.

        >>> Hardware("hopper", 18 * 20.6).channels(RankGroup(8))
        Channels(count=12, inside=30.0, across=30.0)
        >>> Hardware("ampere", 12 * 20.0).channels(RankGroup(8))
        Channels(count=12, inside=20.0, across=20.0)
        """
        if len(group.sizes) > 1:
            if self.nics < 1 or self.nic <= 0:
                raise CannotCollect("the machine has several nodes but no NICs", "set the NIC count and rate per node")
            speed = next((rate for rate in _ACROSS[self.generation] if rate <= self.nic), _ACROSS[self.generation][-1])
            count = max(1, min(self.nics * int(self.nic / speed), int(self.inside / speed)))
        else:
            searched = [(min(_SEARCHED, int(self.inside / rate + 1e-9)), rate) for rate in _INSIDE[self.generation]]
            count, speed = max(searched, key=lambda row: (row[0] * row[1], row[1]))
            count, speed = (count, speed) if count else (1, self.inside)
        slow = speed < 25 or (self.generation in ("hopper", "blackwell") and speed < 50 and count > 4)
        doubled = count if slow else min(2 * count, _PIPELINES)
        speed = speed * count / doubled
        return Channels(doubled, speed, speed)

    def nvls_channels(self, group: RankGroup) -> Channels:
        """Return one channel for each GPU of a node, up to 32.

        >>> Hardware("blackwell", 18 * 40.1, nvls=True).nvls_channels(RankGroup(72))
        Channels(count=32, inside=20, across=20)
        """
        heads = min(max(group.sizes), _HEADS)
        speed = next((rate for rate in _INSIDE[self.generation] if rate * heads <= self.inside), 0.0)
        across = self.nic * self.nics / heads if len(group.sizes) > 1 else speed
        return Channels(heads, speed, across)


@dataclass(frozen=True, slots=True)
class TuningCandidate:
    """Latency (s) and bandwidth (B/s) that NCCL expects of an algorithm and protocol."""

    method: Method
    protocol: Protocol
    latency: float
    bandwidth: float

    def seconds(self, size: float) -> float:
        """Return the seconds for a size in bytes."""
        return self.latency + size / self.bandwidth


def candidates(hardware: Hardware, operation: Operation, group: RankGroup, size: float) -> tuple[TuningCandidate, ...]:
    """Return the candidates that NCCL compares, best first.

    >>> h200 = Hardware("hopper", 18 * 20.6, nvls=True)
    >>> [candidates(h200, "all-reduce", RankGroup(8), size)[0].method for size in (1 << 20, 2 << 20)]
    ['ring', 'nvls']

    Raises:
        CannotCollect: NCCL has no algorithms for the operation (it uses sends), or there is only one rank.
    """
    if operation not in OPERATIONS:
        raise CannotCollect(f"NCCL has no algorithm choice for {operation}", f"supported: {', '.join(OPERATIONS)}")
    if group.ranks < 2:
        raise CannotCollect("choosing an algorithm requires at least 2 ranks, got 1")
    weighed = [candidate for candidate in _all_candidates(hardware, operation, group, size) if candidate.bandwidth > 0]
    return tuple(sorted(weighed, key=lambda candidate: candidate.seconds(size)))


def _all_candidates(hardware: Hardware, operation: Operation, group: RankGroup, size: float) -> Iterator[TuningCandidate]:
    for place, protocol in enumerate(PROTOCOLS):
        yield _ring(hardware, operation, group, size, place, protocol)
        if operation == "all-reduce":
            yield _tree(hardware, group, size, place, protocol)
    if hardware.nvls and _NVLS[hardware.generation] > 0 and max(group.sizes) > 1:
        nodes = len(group.sizes)
        if operation == "all-reduce" and nodes > 1:
            yield _nvls(hardware, group, size, "nvls-tree")
        elif operation == "all-reduce":
            yield _nvls(hardware, group, size, "nvls")


def _ring(
    hardware: Hardware, operation: Operation, group: RankGroup, size: float, place: int, protocol: Protocol
) -> TuningCandidate:
    n, k = group.ranks, len(group.sizes)
    steps = {"all-reduce": 2 * (n - 1), "reduce-scatter": n - 1, "all-gather": n - 1}.get(operation, n)
    channels = hardware.channels(group)
    bus = channels.count * (channels.inside if k <= 2 else channels.across)
    if protocol == "ll":
        max_bus = _LL_ONE_NODE[hardware.generation] if k == 1 else _LL_NODES[hardware.cpu][min(k, 3) - 2]
        bus = min(max_bus, bus / 2)
    elif protocol == "ll128":
        bus = min(0.92 * bus, channels.count * _RING_LL128[hardware.generation])
    inside = _STEP[hardware.link]["ring"][place]
    across = _STEP["network"]["tree" if n == k else "ring"][place]
    latency = _START["ring"][place]
    if operation in ("broadcast", "reduce"):
        latency += _STEP["network" if k > 1 else hardware.link]["ring"][place]  # its chunks are pipelined
    else:
        post = 0.0 if k == 1 else (1.0 if hardware.cpu == "intel" else 2.0) * (3 if protocol == "simple" else 1)
        between = 0 if k == 1 else (2 if operation == "all-reduce" else 1) * (k - 1)
        latency += (steps - between) * max(inside, post) + between * across
    if protocol == "simple" and k > 1 and operation == "all-reduce" and size / (channels.count * n) >= 64:
        latency *= 1.9 if hardware.generation == "volta" else 1.4
    return TuningCandidate("ring", protocol, latency * 1e-6, bus * n / steps * 1e9)


def _tree(hardware: Hardware, group: RankGroup, size: float, place: int, protocol: Protocol) -> TuningCandidate:
    n, k = group.ranks, len(group.sizes)
    channels, columns = hardware.channels(group), min(k, 3) - 1
    bus = channels.count * (channels.inside if k <= 2 else channels.across)
    bus = min(0.92 * bus, channels.count * _TREE[hardware.generation][columns])
    if protocol == "ll":
        max_bus = _LL_ONE_NODE[hardware.generation] if k == 1 else _LL_NODES[hardware.cpu][columns - 1]
        bus = min(bus / 3.8, max_bus)
    elif protocol == "ll128":
        bus = min(bus * (7 / 9 if k == 1 else 120 / 128), channels.count * _TREE_LL128[hardware.generation][columns])
    across = _STEP["network"]["tree"][place]
    latency = _START["tree"][place] + 2 * ((n / k - 1) * _STEP[hardware.link]["tree"][place] + math.log2(k) * across)
    level = _level(size)
    left = _TREE_LEFT[protocol][level] if 0 <= level < len(_TREE_LEFT[protocol]) else 1.0
    return TuningCandidate("tree", protocol, latency * 1e-6, bus / 2 * left * 1e9)


def _nvls(hardware: Hardware, group: RankGroup, size: float, method: Method) -> TuningCandidate:
    n, k = group.ranks, len(group.sizes)
    channels = hardware.nvls_channels(group)
    inside = 2 * channels.inside * _NVLS[hardware.generation] * (channels.count - 1) / channels.count
    speed = inside
    latency = _STEP["nvlink"][method][2]
    if method == "nvls-tree":
        speed = min(inside, channels.across * (2 if k <= 2 else 1), _NVLS_TREE[hardware.generation][min(k, 3) - 1])
        latency += 2 * math.log2(k) * _STEP["network"][method][2]
        if hardware.generation == "blackwell":
            level = _level(size)
            speed *= _TREE_LEFT["simple"][level] if 0 <= level < len(_TREE_LEFT["simple"]) else 1.0
    return TuningCandidate(method, "simple", latency * 1e-6, channels.count * speed * n / (2 * (n - 1)) * 1e9)


def _level(size: float) -> int:
    """Return the power of two relative to 64 B; -1 below."""
    return int(size).bit_length() - 7 if size >= 64 else -1
