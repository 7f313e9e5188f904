"""The "latency numbers" of a machine: the time of one operation of each kind on its parts.

**Source**: the rows of the two tables in Dive into Deep Learning, 13.4 (after Jeff Dean, "Building Software Systems at Google
and Lessons Learned", 2010, and Eliot Eshelman's tables of CPUs and GPUs), and a few more. A row is computed like any op of a
workload; `text_s` is the number in the text. **Error**: docs/validation/components.md for the library's machine `d2l-latency`,
which has the parts of the text. **Range**: a single op on an idle machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal

from hwsim.demand import Term
from hwsim.devices import CannotCompute
from hwsim.machine import Machine, NoRoute, UnknownName
from hwsim.origins import Origin
from hwsim.records import dataclass
from hwsim.views.latency import cpu_probes, gpu_probes, network_probes, storage_probes
from hwsim.views.latency.probe import MEGABYTE, PAGE, ProbeTime, ProbeUnavailable

Table = Literal["common", "gpu"]
MIB: Final = 1024.0**2
TEXT: Final = "d2l 13.4"  # source of a number from the tables of the text


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """A row with a latency.

    Args:
        key, name: key and name of the row.
        table: table of the row.
        seconds: latency (s).
        text_s: latency in the text (s); None if the text has no such row.
        part: part of the machine.
        how: derivation in a few words.
        why: derivation lines recorded at lowering.
    """

    key: str
    name: str
    table: Table
    seconds: float
    text_s: float | None
    part: str
    how: str
    why: Sequence[Term]

    @property
    def uses_text(self) -> bool:
        """Whether an input of the derivation is taken from the text, so that the row is not a prediction."""
        return any(
            isinstance(source, Origin) and source.ref.startswith(TEXT) for term in self.why for _, _, source in term.inputs
        )

    @property
    def ratio(self) -> float | None:
        """Ratio of the simulated latency to the book's; None if the book states none."""
        return None if self.text_s is None else self.seconds / self.text_s


@dataclass(frozen=True, slots=True)
class Probe:
    """A row of a table with the function that measures it.

    Args:
        key, name: key and name of the row.
        measure: function from a machine to the latency.
        text_s: latency in the text (s); None without one.
        table: table of the row.
    """

    key: str
    name: str
    measure: Callable[[Machine], ProbeTime]
    text_s: float | None = None
    table: Table = "common"


@dataclass(frozen=True, slots=True)
class MissingRow:
    """A row that is not available on the machine.

    Args:
        probe: row.
        reason: reason.
    """

    probe: Probe
    reason: str


@dataclass(frozen=True, slots=True)
class LatencyNumbers:
    """The rows of a machine in the order of the text.

    Args:
        rows: available rows.
        missing: rows that are not available.
    """

    rows: tuple[LatencyRow, ...]
    missing: tuple[MissingRow, ...]

    def row(self, key: str) -> LatencyRow | MissingRow:
        """Return the row of a key.

        Raises:
            KeyError: the key is unknown.
        """
        rows: dict[str, LatencyRow | MissingRow] = {row.key: row for row in self.rows}
        return (rows | {row.probe.key: row for row in self.missing})[key]


def _memory(size: float, *, remote: bool) -> Callable[[Machine], ProbeTime]:
    return partial(cpu_probes.memory_read, working_set=size * MIB, remote=remote)


def _sent(kinds: tuple[str, ...], size: float) -> Callable[[Machine], ProbeTime]:
    return partial(network_probes.message, kinds=kinds, size=size)


def _random(way: Literal["read", "write"], sort: storage_probes.Sort) -> Callable[[Machine], ProbeTime]:
    return partial(storage_probes.random_access, sort=sort, way=way)


PROBES: Final[tuple[Probe, ...]] = (
    Probe("l1", "L1 cache hit", partial(cpu_probes.cache_hit, index=0), 1.5e-9),
    Probe("fma", "floating-point add, multiply or FMA", cpu_probes.multiply_add, 1.5e-9),
    Probe("l2", "L2 cache hit", partial(cpu_probes.cache_hit, index=1), 5e-9),
    Probe("mispredict", "branch misprediction", cpu_probes.wrong_guess, 6e-9),
    Probe("l3", "L3 cache hit", partial(cpu_probes.cache_hit, index=2), 16e-9),
    Probe("l3-shared", "L3 hit, line shared with another core", cpu_probes.line_of_another_core, 25e-9),
    Probe("mutex", "mutex lock and unlock", cpu_probes.mutex, 25e-9),
    Probe("l3-modified", "L3 hit, line modified in another core", cpu_probes.line_of_another_core, 29e-9),
    Probe("l3-remote", "L3 hit on another socket", cpu_probes.line_of_another_socket, 40e-9),
    Probe("socket-hop", "hop to another socket", cpu_probes.socket_hop, 40e-9),
    Probe("memory-64mb", "memory read, 64 MB working set", _memory(64, remote=False), 46e-9),
    Probe("memory-64mb-remote", "memory read, 64 MB, other socket", _memory(64, remote=True), 70e-9),
    Probe("memory-256mb", "memory read, 256 MB working set", _memory(256, remote=False), 75e-9),
    Probe("pmem-write", "persistent memory, random write", _random("write", "persistent memory"), 94e-9),
    Probe("memory-256mb-remote", "memory read, 256 MB, other socket", _memory(256, remote=True), 120e-9),
    Probe("pmem-read", "persistent memory, random read", _random("read", "persistent memory"), 305e-9),
    Probe("fabric-4kb", "send 4 KB over an HPC fabric", _sent(("fabric",), PAGE), 1e-6),
    Probe("compress-1kb", "compress 1 KB (Snappy)", cpu_probes.compress, 3e-6),
    Probe("ethernet-4kb", "send 4 KB over Ethernet", _sent(("ethernet",), PAGE), 10e-6),
    Probe("nvme-write-4kb", "NVMe SSD, 4 KB random write", _random("write", "NVMe SSD"), 30e-6),
    Probe("memory-1mb", "memory, 1 MB sequential read", cpu_probes.stream),
    Probe("fabric-1mb", "send 1 MB over an HPC fabric", _sent(("fabric",), MEGABYTE)),
    Probe("nvme-read-4kb", "NVMe SSD, 4 KB random read", _random("read", "NVMe SSD"), 120e-6),
    Probe("nvme-read-1mb", "NVMe SSD, 1 MB sequential read", partial(storage_probes.long_read, sort="NVMe SSD"), 208e-6),
    Probe("wifi-4kb", "send 4 KB over Wi-Fi", _sent(("wifi",), PAGE)),
    Probe("sata-write-4kb", "SATA SSD, 4 KB random write", _random("write", "SATA SSD"), 500e-6),
    Probe("sata-read-4kb", "SATA SSD, 4 KB random read", _random("read", "SATA SSD"), 500e-6),
    Probe("data-centre", "round trip in a data centre", partial(network_probes.round_trip, far=False), 500e-6),
    Probe("ethernet-1mb", "send 1 MB over Ethernet", _sent(("ethernet",), MEGABYTE)),
    Probe("sata-read-1mb", "SATA SSD, 1 MB sequential read", partial(storage_probes.long_read, sort="SATA SSD"), 2e-3),
    Probe("volume-read-4kb", "other storage, 4 KB random read", _random("read", "other storage")),
    Probe("volume-read-1mb", "other storage, 1 MB sequential read", partial(storage_probes.long_read, sort="other storage")),
    Probe("disk-read-1mb", "hard disk, 1 MB sequential read", partial(storage_probes.long_read, sort="hard disk"), 5e-3),
    Probe("disk-read-4kb", "hard disk, 4 KB random read", _random("read", "hard disk"), 10e-3),
    Probe("wan", "round trip California to the Netherlands", partial(network_probes.round_trip, far=True), 150e-3),
    Probe("gpu-shared", "GPU shared memory (L1) access", gpu_probes.shared_memory, 30e-9, "gpu"),
    Probe("gpu-l2", "GPU L2 access", gpu_probes.second_level, None, "gpu"),
    Probe("gpu-global", "GPU global memory access", gpu_probes.global_memory, 200e-9, "gpu"),
    Probe("gpu-launch", "kernel launch", gpu_probes.launch, 10e-6, "gpu"),
    Probe("nvlink-1mb", "copy 1 MB to another GPU (NVLink)", gpu_probes.peer_copy, 30e-6, "gpu"),
    Probe("pcie-1mb", "copy 1 MB from host to GPU (PCIe)", gpu_probes.host_copy, 80e-6, "gpu"),
)
KEYS: Final = tuple(probe.key for probe in PROBES)


def find(machine: Machine, **_: object) -> LatencyNumbers:
    """Return both tables for a machine; rows without a part or a number are in `missing`."""
    rows: list[LatencyRow] = []
    missing: list[MissingRow] = []
    for probe in PROBES:
        try:
            timed = probe.measure(machine)
        except (ProbeUnavailable, CannotCompute, NoRoute, UnknownName) as error:
            reason = error.message if isinstance(error, CannotCompute) else str(error)
            missing.append(MissingRow(probe, reason))
        else:
            rows.append(
                LatencyRow(probe.key, probe.name, probe.table, timed.seconds, probe.text_s, timed.part, timed.how, timed.why)
            )
    return LatencyNumbers(tuple(rows), tuple(missing))
