"""Animated sends between devices: the position of each chunk is the fraction of its bytes that has been transferred."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Final

from hwsim import ticks
from hwsim.demand import Capacity, Cost, by_name
from hwsim.formats import format_quantity, natural
from hwsim.graph.opgraph import Label
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.animate.scene import FOOT, TOP, WIDTH, Knot, NothingMoves, Scene, SceneBox, Token, TokenPath, Words
from hwsim.views.kit.figure import run_caption

DEVICES: Final = 24  # largest number of devices
SENDS: Final = 400  # largest number of sends
SIZE: Final = 17.0  # size of a chunk (px)
INSIDE: Final = 0.76  # fraction of the radius at which sends begin and end
BOX: Final = (56.0, 30.0)  # size of a device (px)


def scene(result: Result) -> Scene:
    """Return the devices on a circle, with the chunks between them.

    Raises:
        NothingMoves: the run has no sends that are simulated one by one.
    """
    timeline = result.timeline
    flat = timeline.flat
    known = by_name(flat.graph.capacities)
    sends: list[tuple[int, str, str, float]] = []
    for op in range(len(timeline)):
        cost = int(flat.cost[op])
        if cost >= 0 and len(sends) < SENDS:
            route = ends(flat.graph.labels[flat.label[op]], flat.graph.costs[cost], known)
            if route is not None:
                sends.append((op, *route))
    devices = list(dict.fromkeys(name for _, source, target, _ in sends for name in (source, target)))
    if not sends or len(devices) > DEVICES:
        found = "no point-to-point sends" if not sends else f"sends between {len(devices)} devices: expected at most {DEVICES}"
        raise NothingMoves(f"this run has {found}; a collective is simulated send by send with `steps: explicit`")
    devices.sort(key=natural)
    middle, radius = (WIDTH / 2, (TOP + FOOT) / 2), (WIDTH / 2 - 150, (FOOT - TOP) / 2 - 26)
    place = {}
    for number, name in enumerate(devices):
        angle = 2 * math.pi * number / len(devices) - math.pi / 2
        place[name] = middle[0] + radius[0] * math.cos(angle), middle[1] + radius[1] * math.sin(angle)
    tokens = []
    port = {
        name: tuple(centre + INSIDE * (coordinate - centre) for coordinate, centre in zip(position, middle, strict=True))
        for name, position in place.items()
    }
    for op, source, target, _ in sends:
        (x, y), (to_x, to_y) = ((left - SIZE / 2, top - SIZE / 2) for left, top in (port[source], port[target]))
        knots = tuple(Knot(time_s, x + part * (to_x - x), y + part * (to_y - y)) for time_s, part in progress(result, op))
        step = flat.graph.labels[flat.label[op]].name.rpartition(" ")[2]
        number = int(step) if step.isdigit() else 0
        tokens.append(Token(knots, SIZE, SIZE, devices.index(source) % 8, (knots[0].at, knots[-1].at), str(number + 1)))
    boxes = [SceneBox(x - BOX[0] / 2, y - BOX[1] / 2, *BOX, name=name) for name, (x, y) in place.items()]
    begin, end = (fold(knot.at for token in tokens for knot in token.knots) for fold in (min, max))
    amounts = sorted({moved for *_, moved in sends})
    size = format_quantity(amounts[-1], "B") if len(amounts) == 1 else f"up to {format_quantity(amounts[-1], 'B')}"
    title = f"{len(sends)} sends of {size} between {len(devices)} devices take {format_quantity(end - begin, 's')}"
    words = (Words(WIDTH - 24, TOP + 8, "number: step", 12.0, "end", soft=True),)
    below = run_caption(result.workload, result.machine, result.settings)
    ways = [
        TokenPath(*port[source], *port[target])
        for source, target in dict.fromkeys((source, target) for _, source, target, _ in sends)
    ]
    return Scene(title, below, begin, end, tuple(boxes), words, tuple(tokens), tuple(ways))


def ends(label: Label, cost: Cost, known: Mapping[str, Capacity]) -> tuple[str, str, float] | None:
    """Return (source, target, bytes) of a send: an op that transfers bytes over links between devices; None for others."""
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
    """Return (time in s, transferred fraction) of a send: at its start, each change of its rate, and its end."""
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
            knots += [(time_fs / FEMTO, part / carried) for time_fs, part in zip(changes, parts, strict=True)]
    return [*knots, (end / FEMTO, 1.0)]
