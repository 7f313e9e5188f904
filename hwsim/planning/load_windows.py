"""The part of a varying load that a plan simulates.

    day      whole cycles if the run has as many requests, or if a cycle has at most `LONGEST`; otherwise the peak with its ramp:
             the 24th part of the cycle around it (the peak hour of a day), or less if that has more than `LONGEST` requests
    trace    the whole trace
    clients  at least the ramp in which they start

The peak determines latencies, because the load changes slowly compared with the stay of a request. Rates, and the cost of a
token, are those at the average rate. Autoscaled services, and a day that starts at a stated time, are simulated as written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from hwsim.formats import format_quantity, pluralized
from hwsim.planning.variants import put_values
from hwsim.spec import Mistakes, Tree, decode, resolve, tree_of
from hwsim.units import DAY
from hwsim.workload.load.arrivals import ArrivalKeys, DayKeys

LONGEST: Final = 10_000  # requests up to which a run covers a whole cycle, or the peak hour
PARTS: Final = 24  # of a cycle, of which one is the peak hour
USUAL: Final = 100  # default number of requests of a model


class PlayedLoad(NamedTuple):
    """The load of a run.

    Args:
        workload: workload with this part of its load.
        window: description of the part; "" for the load as written.
        mean_per_s: average arrival rate (1/s), if that of the part differs from it; 0 otherwise.
        ramped: path of the number of requests, if the run must be lengthened until all clients have started; "" otherwise.
    """

    workload: Tree
    window: str = ""
    mean_per_s: float = 0.0
    ramped: str = ""


def played_load(workload: Tree) -> PlayedLoad:
    """Return the part of a workload's load that a plan simulates."""
    mistakes = Mistakes()
    resolved = resolve(workload, mistakes, kind="workload")
    mistakes.raise_if_any()
    infer, services = resolved.get("infer"), resolved.get("services")
    if infer is not None:
        served, home = {"workload.infer.arrivals": infer.get("arrivals")}, "workload.infer"
    else:
        items = () if services is None else services.items()
        served, home = {f"workload.services.{name}.arrivals": service.get("arrivals") for name, service in items}, "workload"
    trees = {path: tree for path, tree in served.items() if tree is not None and tree.is_mapping}
    decoded = {path: decode(tree, ArrivalKeys, mistakes) for path, tree in trees.items()}
    loads = {path: keys for path, keys in decoded.items() if keys is not None}
    if any(keys.trace is not None for keys in loads.values()):
        part = workload.without("requests", "for") if infer is None else workload
        given = workload.get("infer")
        return PlayedLoad(part if given is None else part.put("infer", given.without("requests")), "the whole trace")
    if any(keys.clients is not None for keys in loads.values()):
        return PlayedLoad(workload, ramped=f"{home}.requests")
    count = resolved.get("requests") if infer is None else infer.get("requests") or tree_of(USUAL)
    days = {path: keys.day for path, keys in loads.items() if keys.day is not None}
    if not days or count is None or not isinstance(count.value, int) or (infer is not None and infer.get("scale") is not None):
        return PlayedLoad(workload)
    return _of_day(workload, f"{home}.requests", count.value, trees, loads, days)


def _of_day(
    workload: Tree,
    counted: str,
    count: int,
    trees: Mapping[str, Tree],
    loads: Mapping[str, ArrivalKeys],
    days: Mapping[str, DayKeys],
) -> PlayedLoad:
    """Return whole cycles, or the peak with its ramp."""
    first, cycle = next(iter(days.values())), max(day.cycle for day in days.values())
    mean = math.fsum(keys.rate or 0.0 for keys in loads.values())
    peak = mean + math.fsum(day.peak - day.mean for day in days.values())
    if any(day.start for day in days.values()):
        return PlayedLoad(workload)
    whole = math.ceil(mean * cycle)
    cycles = -(-count // whole)
    if count >= whole or whole <= LONGEST:
        part = f"{pluralized(cycles, 'whole cycle')} of {format_quantity(cycle, 's')}"
        return PlayedLoad(_put(workload, counted, cycles * whole), part)
    hour = math.ceil(peak * cycle / PARTS)
    count = max(count, hour) if hour <= LONGEST else count
    span, workload = count / peak, _put(workload, counted, count)
    for path, day in days.items():
        start = (day.at - span / 2) % day.cycle
        workload = _put(workload, path, tree_of({"day": {**_day(trees[path]), "start": f"{start!r} s"}}, trees[path].place))
    start, end = (first.at - span / 2) % first.cycle, (first.at + span / 2) % first.cycle
    window = f"peak {'hour ' if count == hour and cycle == DAY else ''}{_clock(start, cycle)} to {_clock(end, cycle)} of"
    rates = "rates and cost are those at the average rate, power and use of the GPUs those of the peak"
    return PlayedLoad(workload, f"{window} the cycle of {format_quantity(cycle, 's')}, with its ramp; {rates}", mean)


def _day(arrivals: Tree) -> dict[str, object]:
    day = arrivals.get("day")
    return {} if day is None else dict(day.plain())


def _put(workload: Tree, path: str, value: Tree | int) -> Tree:
    return put_values(workload, {"": workload}, path, value)[1][""]


def _clock(seconds: float, cycle: float) -> str:
    """Return a time of the cycle.

    >>> _clock(48_600.0, DAY), _clock(90.0, 600.0)
    ('13:30', '90.0 s')
    """
    minutes = round(seconds / 60)
    return f"{minutes // 60 % 24}:{minutes % 60:02}" if cycle == DAY else format_quantity(seconds, "s")
