"""The host of each device, and the wires between hosts and the core, as columns (see `hwsim.machine.hosts`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hwsim.machine.layout import Layout
from hwsim.machine.wires import Ints
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class HostWires:
    """A table of the wires between hosts and the core, host by host: host h has the rows first[h] to first[h + 1] - 1.

    Args:
        first: first row of each host.
        local: number of the device within its host, by row.
        core: device number in the core, by row.
        wire: number of the wire, by row.
        out: whether the host is end a of the wire, by row.
        kind: by host; equal for equal hosts that are linked to the same devices of the core in the same way.
        ports: by host; equal for equal hosts whose wires end at the same devices within the host.
    """

    first: Ints
    local: Ints
    core: Ints
    wire: Ints
    out: NDArray[np.bool_]
    kind: Ints
    ports: Ints


@dataclass(frozen=True, slots=True)
class HostOwners:
    """An assignment of devices to hosts.

    Args:
        owner: host of each device; -1 in the core.
        starts: number of the first device of each host.
        part: index of the part of each host.
    """

    owner: Ints
    starts: Ints
    part: Ints

    @classmethod
    def of(cls, layout: Layout) -> HostOwners:
        """Return the owners in a scope; hosts are numbered part by part."""
        owner = np.full(layout.size, -1, np.int32)
        none = np.empty(0, np.int32)
        starts, parts = [none], [none]
        count = 0
        for index, part in enumerate(layout.parts):
            if part.child is not None or not part.forwards:
                hosts = np.arange(count, count + len(part.names), dtype=np.int32)
                owner[part.start : part.start + part.size] = np.repeat(hosts, part.each)
                starts.append(part.start + (hosts - count) * part.each)
                parts.append(np.full(len(hosts), index, np.int32))
                count += len(hosts)
        return cls(owner, np.concatenate(starts), np.concatenate(parts))

    def attached(self, layout: Layout) -> HostWires | None:
        """Return the wires between hosts and the core; None if a host is linked to a host."""
        a, b = layout.wires.a, layout.wires.b
        host_a, host_b = self.owner[a], self.owner[b]
        if bool(((host_a >= 0) & (host_b >= 0)).any()):
            return None
        wire = np.flatnonzero((host_a >= 0) | (host_b >= 0)).astype(np.int32)
        out = host_a[wire] >= 0
        host = np.where(out, host_a[wire], host_b[wire])
        device, core = np.where(out, a[wire], b[wire]), np.where(out, b[wire], a[wire])
        local = device - self.starts[host]
        bundle = np.searchsorted(np.array(layout.wires.starts), wire, side="right") - 1
        count = layout.wires.count[wire]
        order = np.lexsort((bundle, core, local, host))
        host, local, core, wire, out = host[order], local[order], core[order], wire[order], out[order]
        first = np.searchsorted(host, np.arange(len(self.starts) + 1)).astype(np.int32)
        kind = _host_classes(first, (local, core, bundle[order], count[order], out.astype(np.int32)), self.part)
        return HostWires(first, local, core, wire, out, kind, _host_classes(first, (local,), self.part))


def _host_classes(first: Ints, columns: Iterable[Ints], part: Ints) -> Ints:
    """Return a number for each host, equal for hosts of one part with equal rows."""
    row_counts = np.diff(first)
    codes = part.astype(np.int64) * (int(row_counts.max(initial=0)) + 1) + row_counts
    _, codes = np.unique(codes, return_inverse=True)
    for row in range(int(row_counts.max(initial=0))):
        hosts = np.flatnonzero(row_counts > row)
        for column in columns:
            values = column[first[hosts] + row].astype(np.int64)
            _, values = np.unique(values, return_inverse=True)
            mixed = codes[hosts] * (int(values.max(initial=0)) + 1) + values
            _, mixed = np.unique(mixed, return_inverse=True)
            codes = codes.copy()
            codes[hosts] = mixed + (int(codes.max()) + 1)
        _, codes = np.unique(codes, return_inverse=True)
    return codes
