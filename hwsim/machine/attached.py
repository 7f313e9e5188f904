"""The host of each device, and the wires between hosts and the core (see `hwsim.machine.hosts`), as columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hwsim.machine.layout import Layout
from hwsim.machine.wires import Ints
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True)
class Attached:
    """The wires between hosts and the core, host by host; host h has rows first[h] ... first[h + 1].

    local, core: their ends. wire: its number. out: whether the host is its end a. kind: hosts of one kind are linked alike, to
    the same devices of the core; ports: hosts of one number have wires at the same ones of their devices.
    """

    first: Ints
    local: Ints
    core: Ints
    wire: Ints
    out: NDArray[np.bool_]
    kind: Ints
    ports: Ints


@dataclass(frozen=True, slots=True)
class Owners:
    """owner: by number of a device its host, -1 in the core. starts: by host the number of its first device.
    part: by host the place of its part.
    """

    owner: Ints
    starts: Ints
    part: Ints

    @classmethod
    def of(cls, layout: Layout) -> Owners:
        """The owners in a scope; hosts are numbered part by part."""
        owner = np.full(layout.size, -1, np.int32)
        none = np.empty(0, np.int32)
        starts, parts = [none], [none]
        count = 0
        for at, part in enumerate(layout.parts):
            if part.child is not None or not part.forwards:
                many = len(part.names)
                owner[part.start : part.start + part.size] = np.repeat(np.arange(count, count + many, dtype=np.int32), part.each)
                starts.append(part.start + np.arange(many, dtype=np.int32) * part.each)
                parts.append(np.full(many, at, np.int32))
                count += many
        return cls(owner, np.concatenate(starts), np.concatenate(parts))

    def attached(self, layout: Layout) -> Attached | None:
        """The wires between hosts and the core; None where hosts are linked to hosts."""
        a, b = layout.wires.a, layout.wires.b
        at_a, at_b = self.owner[a], self.owner[b]
        if bool(((at_a >= 0) & (at_b >= 0)).any()):
            return None
        wire = np.flatnonzero((at_a >= 0) | (at_b >= 0)).astype(np.int32)
        out = at_a[wire] >= 0
        host = np.where(out, at_a[wire], at_b[wire])
        device, core = np.where(out, a[wire], b[wire]), np.where(out, b[wire], a[wire])
        local = device - self.starts[host]
        bundle = np.searchsorted(np.array(layout.wires.starts), wire, side="right") - 1
        count = layout.wires.count[wire]
        order = np.lexsort((bundle, core, local, host))
        host, local, core, wire, out = host[order], local[order], core[order], wire[order], out[order]
        first = np.searchsorted(host, np.arange(len(self.starts) + 1)).astype(np.int32)
        kind = _alike(first, (local, core, bundle[order], count[order], out.astype(np.int32)), self.part)
        return Attached(first, local, core, wire, out, kind, _alike(first, (local,), self.part))


def _alike(first: Ints, columns: Iterable[Ints], part: Ints) -> Ints:
    """A number for each host: equal for hosts of one part whose rows are equal."""
    many = np.diff(first)
    codes = part.astype(np.int64) * (int(many.max(initial=0)) + 1) + many
    _, codes = np.unique(codes, return_inverse=True)
    for row in range(int(many.max(initial=0))):
        has = np.flatnonzero(many > row)
        for column in columns:
            values = column[first[has] + row].astype(np.int64)
            _, values = np.unique(values, return_inverse=True)
            mixed = codes[has] * (int(values.max(initial=0)) + 1) + values
            _, mixed = np.unique(mixed, return_inverse=True)
            codes = codes.copy()
            codes[has] = mixed + (int(codes.max()) + 1)
        _, codes = np.unique(codes, return_inverse=True)
    return codes
