"""Sends between devices: each chunk is as far on its way as its flow has carried bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from hwsim import ticks
from hwsim.demand import Capacity, Cost, by_name
from hwsim.formats import format_quantity, natural
from hwsim.graph.opgraph import Label
from hwsim.records import dataclass
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.kit.figure import about

DEVICES: Final = 24  # on the circle, at most
SENDS: Final = 400
INSIDE: Final = 0.76  # of the radius: where sends begin and end
WIDTH: Final = 720
TOP: Final = 62.0  # below the head
FOOT: Final = 362.0  # above the axis of time
COLOURS: Final = 8


class Knot(NamedTuple):
    """A place at an instant (s); between two knots a chunk moves straight and evenly."""

    at: float
    x: float
    y: float


class Chunk(NamedTuple):
    """A send. step: of its collective, from 1 on; colour: of the device that sends; knots: in order of time."""

    step: int
    colour: int
    knots: tuple[Knot, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """An animation as data.

    Args:
        title: what is seen; below: the run.
        begin, end: seconds of the run that are shown.
        devices: name and middle of each box.
        ways: both ends of each line on which chunks move.
    """

    title: str
    below: str
    begin: float
    end: float
    devices: tuple[tuple[str, float, float], ...]
    ways: tuple[tuple[float, ...], ...]
    chunks: tuple[Chunk, ...]


class NothingMoves(ValueError):
    """The run has no sends that are played one by one; the message says what it needs."""


def scene(result: Result) -> Scene:
    """Devices on a circle, and the chunks between them.

    Raises:
        NothingMoves: the run has no sends that are played one by one.
    """
    timeline = result.timeline
    flat = timeline.flat
    known = by_name(flat.graph.capacities)
    sends: list[tuple[int, str, str, float]] = []
    for op in range(len(timeline)):
        cost = int(flat.cost[op])
        if cost >= 0 and len(sends) < SENDS:
            way = ends(flat.graph.labels[flat.label[op]], flat.graph.costs[cost], known)
            if way is not None:
                sends.append((op, *way))
    devices = sorted({name for _, source, target, _ in sends for name in (source, target)}, key=natural)
    if not sends or len(devices) > DEVICES:
        hint = "no sends one by one" if not sends else f"{len(devices)} devices that send; {DEVICES} can be shown"
        raise NothingMoves(f"this run has {hint}: a collective plays its sends with `steps: explicit`")
    middle, radius = (WIDTH / 2, (TOP + FOOT) / 2), (WIDTH / 2 - 150, (FOOT - TOP) / 2 - 26)
    angles = {name: 2 * math.pi * number / len(devices) - math.pi / 2 for number, name in enumerate(devices)}
    place = {name: (middle[0] + radius[0] * math.cos(at), middle[1] + radius[1] * math.sin(at)) for name, at in angles.items()}
    port = {
        name: tuple(centre + INSIDE * (at - centre) for at, centre in zip(each, middle, strict=True))
        for name, each in place.items()
    }
    chunks = []
    for op, source, target, _ in sends:
        (x, y), (to_x, to_y) = port[source], port[target]
        knots = tuple(Knot(at, x + part * (to_x - x), y + part * (to_y - y)) for at, part in progress(result, op))
        step = flat.graph.labels[flat.label[op]].name.rpartition(" ")[2]
        chunks.append(Chunk(int(step) + 1 if step.isdigit() else 1, devices.index(source) % COLOURS, knots))
    begin, end = (fold(knot.at for chunk in chunks for knot in chunk.knots) for fold in (min, max))
    amounts = sorted({moved for *_, moved in sends})
    size = format_quantity(amounts[-1], "B") if len(amounts) == 1 else f"up to {format_quantity(amounts[-1], 'B')}"
    title = f"{len(sends)} sends of {size} between {len(devices)} devices take {format_quantity(end - begin, 's')}"
    below = about(result.workload, result.machine, result.settings)
    ways = tuple((*port[source], *port[target]) for source, target in dict.fromkeys((each[1], each[2]) for each in sends))
    return Scene(title, below, begin, end, tuple((name, *place[name]) for name in devices), ways, tuple(chunks))


def ends(label: Label, cost: Cost, known: Mapping[str, Capacity]) -> tuple[str, str, float] | None:
    """(source, target, bytes) of a send; None if an op is none: it carries bytes over links, from device to device."""
    hops: dict[str, str] = {}
    size = 0.0
    for name, amount, unit in cost.moved:
        if unit == "B" and known[name].kind == "way":
            source, target = known[name].ends
            hops[source], size = target, amount
    starts = set(hops) - set(hops.values())
    device = label.device if label.device in hops else next(iter(sorted(starts)), "")
    first = device
    for _ in range(len(hops)):
        device = hops.get(device, device)
    return (first, device, size) if hops and device != first and cost.requests is None else None


def progress(result: Result, op: int) -> list[tuple[float, float]]:
    """(second, part of its bytes that has been carried) of a send: at its start, at every change of its pace, at its end."""
    timeline = result.timeline
    flat = timeline.flat
    start, end, number = int(timeline.start[op]), int(timeline.end[op]), int(timeline.flow_class[op])
    begin = min(end, start + ticks.femtoseconds(flat.graph.costs[int(flat.cost[op])].demand.latency))
    knots = [(start / FEMTO, 0.0), *([(begin / FEMTO, 0.0)] if begin > start else [])]
    if number >= 0 and number < len(timeline.paces) and end > begin:
        carried, _ = timeline.service(number, begin, end)
        changes = sorted({pace.start for pace in timeline.paces[number] if begin < pace.start < end})
        if carried > 0:
            parts = accumulate(timeline.service(number, low, high)[0] for low, high in pairwise([begin, *changes]))
            knots += [(at / FEMTO, part / carried) for at, part in zip(changes, parts, strict=True)]
    return [*knots, (end / FEMTO, 1.0)]
