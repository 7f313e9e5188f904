"""New times of host threads: of a recording without a GPU they are computed on a core, others stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwsim import ticks
from hwsim.importers.aten import plain
from hwsim.importers.explaining import Explained
from hwsim.importers.lowering import CannotLower, Lowered
from hwsim.importers.predicting.times import Times
from hwsim.importers.recording import What
from hwsim.importers.threads import Piece
from hwsim.ticks import FEMTO


def host(times: Times, position: int, explained: Explained, ops: NDArray[np.intp], *, keep: bool) -> None:
    """Operators of a recording without a GPU on a core of the CPU; otherwise host threads are as recorded."""
    total = ticks.total(times.body.time[ops]) / FEMTO
    computes = not keep and not len(explained.ops)
    if not computes:
        times.sum("host", "host threads", "host", "software, as recorded").add(total, total)
        return
    rest = total
    inner = _by_piece(explained, _outermost(explained, times.meaning))
    device = times.placing.host(position)
    for op in ops.tolist():
        place = int(times.replay.slice[op])
        if place < 0 or explained.rank.slices.what[place] != What.OP:
            continue
        rest -= _host_op(times, op, place, explained, inner.get(place, []), device)
    times.sum("host", "between operators", "host", "software, as recorded").add(rest, rest)


def _host_op(times: Times, op: int, place: int, explained: Explained, inside: list[int], device: str) -> float:
    """Operators with a statement inside an outermost one, whose other time is as recorded; their recorded seconds."""
    rank = explained.rank
    taken, changed = 0.0, 0.0
    lowered: Lowered | None = None
    for at in inside:
        name, number = rank.names[rank.slices.name[at]], int(rank.slices.facts[at])
        meant = times.meaning(name, rank.facts[number])
        recorded = float(rank.slices.duration[at]) / FEMTO
        try:
            if meant.statement is None:
                raise CannotLower(meant.why)
            if meant.kind == "collectives":
                raise CannotLower("a collective of processes without a GPU")
            (kind, keys) = next(iter(meant.statement.items()))
            lowered = times.lowering.on({kind: {**keys, "cores": 1}}, device)
        except CannotLower as error:
            times.sum(meant.kind, plain(name), "kept", str(error)).add(recorded, recorded)
            taken += recorded
            continue
        seconds = lowered.body + lowered.start
        times.sum(meant.kind, plain(name), "predicted", "").add(recorded, seconds, lowered.doubts(seconds))
        taken, changed = taken + recorded, changed + seconds - recorded
    seconds_now = max(0.0, float(times.body.time[op]) / FEMTO + changed)
    if lowered is not None:
        times.take(op, seconds_now)
        name = rank.names[rank.slices.name[place]]
        times.cost[op] = times.derived(name, lowered, seconds_now, device, lowered.doubts(seconds_now))
    return taken


def _by_piece(explained: Explained, chosen: Iterable[int]) -> Mapping[int, list[int]]:
    """Chosen slices by the outermost operator of their piece; a slice of none is left out."""
    pieces, parent = explained.pieces, explained.linked.parent
    outermost = set(pieces.slice[(pieces.kind == Piece.OP) & (pieces.slice >= 0)].tolist())
    inside: dict[int, list[int]] = {}
    for place in chosen:
        around = place
        while around >= 0 and around not in outermost:
            around = int(parent[around])
        if around >= 0:
            inside.setdefault(around, []).append(place)
    return inside


def _outermost(explained: Explained, meaning_of: Any) -> Iterator[int]:
    """The outermost operators that have a statement: their recorded time has the time of what they call in it."""
    rank, linked = explained.rank, explained.linked
    slices = rank.slices
    taken = np.zeros(len(slices), bool)
    for place in np.flatnonzero(slices.what == What.OP).tolist():  # parents come before their children
        parent = int(linked.parent[place])
        if parent >= 0 and taken[parent]:
            taken[place] = True
            continue
        number = int(slices.facts[place])
        if number >= 0 and meaning_of(rank.names[slices.name[place]], rank.facts[number]).statement is not None:
            taken[place] = True
            yield place
