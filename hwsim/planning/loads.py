"""Services in a plan: run length for a steady state, intervals of their latencies, and overload."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from hwsim.api import Run
from hwsim.costs.amount import Amount
from hwsim.families_interface import family_reports
from hwsim.planning.reasons import Reason
from hwsim.studies.states import ServiceSteadiness, states

RUN_TIME_FACTOR: Final = 4  # maximum factor by which a run is lengthened
LOAD: Final = "load"  # constraint: the service completes the arriving requests
Ends = tuple[float, float | None]  # low and high as parts of a value; None: no end


class PlannedLoad(NamedTuple):
    """The load of the first service of a run.

    Args:
        grows: reason why there is no steady state; "" if there may be one.
        excess: arrival rate / completion rate - 1; None if no requests complete.
        ranges: 90 % interval by measure, over other random requests.
        note: remark about the length of the run.
        window: part of the load that the run covers; "" for the load as written.
    """

    grows: str = ""
    excess: float | None = 0.0
    ranges: Mapping[str, Ends] = {}
    note: str = ""
    window: str = ""


def long_enough(
    play: Callable[[Mapping[str, int]], Run], wanted: Collection[str], ramped: str = ""
) -> tuple[Run, dict[str, int]]:
    """Return a run that is long enough for a steady state, and the request counts that it required.

    Args:
        play: function that simulates with other request counts, given by path.
        wanted: measures for which the run must be long enough, by the rules of `hwsim simulate --find`.
        ramped: path of the number of requests, if some clients may not have started by the end; "" otherwise.
    """
    counts: dict[str, int] = {}
    run = play(counts)
    for _ in range(RUN_TIME_FACTOR):
        short = [state for state in states(run) if state.more(_named(state, wanted)) is not None]
        more = {load.counted: load.more([]) or load.most for load in short}  # the most where only a measure is not known yet
        if not more and ramped and any(warning.code == "partial-cycle" for warning in run.warnings):
            more = {ramped: 4 * max(state.requests for state in states(run))}
        if not more:
            break
        counts |= more
        run = play(counts)
    return run, counts


def load_of(run: Run, *, lengthened: bool) -> PlannedLoad:
    """Return the load of the first service of a run."""
    state = next(states(run), None)
    return PlannedLoad() if state is None else _load(run, state, lengthened=lengthened)


def _named(state: ServiceSteadiness, asked: Collection[str]) -> list[str]:
    """Return the service quantities of the requested measures."""
    return [name for name in state.known if _measure(state, name) in asked]


def _measure(state: ServiceSteadiness, name: str) -> str:
    return name.removeprefix(f"{state.name}." if state.name else "")


def _load(run: Run, state: ServiceSteadiness, *, lengthened: bool) -> PlannedLoad:
    unsettled = state.brief or any(report.settling(run) for report in family_reports(run))
    note = f"runs of {state.requests:,} requests: those of the file are too few to tell" if lengthened else ""
    if unsettled and not state.grows:
        note = f"{state.requests:,} requests are over before the service is steady: with more of them times are longer"
    halves, ranges = dict(state.halves), dict[str, Ends]()
    if (half := halves.get(f"{state.name}.tokens_per_s".removeprefix("."))) is not None:  # where arrivals do not set it
        ranges |= dict.fromkeys(("tokens_per_s", "requests_per_s"), (math.exp(-half), math.exp(half)))
    for name, (amount, _) in state.known.items():
        half = halves.get(name.rpartition("_")[0], 0.0)
        if amount.value > 0:
            low = _away(amount.low / amount.value, half)
            high = None if unsettled or not math.isfinite(amount.high) else 1.0 / _away(amount.value / amount.high, half)
            ranges[_measure(state, name)] = low, high
    return PlannedLoad(state.grows, state.excess if math.isfinite(state.excess) else None, ranges, note)


def _away(part: float, half: float) -> float:
    """Return the lower end of an interval (share of the value), with a further error of half width `half` (logarithm)."""
    return math.exp(-math.hypot(math.log(part), half)) if 0 < part <= 1 else min(part, 1.0)


def overload_reason(load: PlannedLoad, replicas: int) -> Reason | None:
    """Return the rejection reason of an overloaded service; None if it may reach a steady state."""
    if not load.grows:
        return None
    who = f" by each of {replicas}" if replicas > 1 else ""
    text = f"no steady state: {load.grows}{who}"
    return Reason(LOAD, text) if load.excess is None else Reason(LOAD, text, 1.0 + load.excess, 1.0, load.excess)


def load_amount(value: float, ends: Ends | None, others: list[float]) -> Amount:
    """Return a number with an interval from relative ends and from the values of further runs."""
    low, high = (1.0, 1.0) if ends is None else ends
    return Amount(value, min([value * low, *others]), math.inf if high is None else max([value * high, *others]))
