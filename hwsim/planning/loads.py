"""Services of a plan: runs that are long enough to be steady, how far their times are known, and loads that are too much."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from hwsim.api import Run
from hwsim.costs.amount import Amount
from hwsim.doors import facts_of
from hwsim.planning.reasons import Reason
from hwsim.studies.states import State, states

LONGER: Final = 4  # times that a run is made longer, at the most
LOAD: Final = "load"  # the constraint that a service keeps up with what comes
Ends = tuple[float, float | None]  # low and high as parts of a value; None: no end


class Load(NamedTuple):
    """The load of the first service of a run.

    Args:
        grows: why there is no steady state, "" if there may be one; excess: part by which more comes than is answered, None where
            nothing is answered any more.
        ranges: by measure, where nine of ten such services are that get other requests.
        note: what a reader has to know of the run's length.
    """

    grows: str = ""
    excess: float | None = 0.0
    ranges: Mapping[str, Ends] = {}
    note: str = ""


def long_enough(play: Callable[[Mapping[str, int]], Run], wanted: Collection[str]) -> tuple[Run, dict[str, int]]:
    """A run in which the requests that are there at once are replaced often enough, and the numbers of requests that it took.

    Args:
        play: the run with other numbers of requests, by the paths where files say them.
        wanted: measures that the run is to be long enough for, as far as `hwsim simulate --find` would make it longer.
    """
    counts: dict[str, int] = {}
    run = play(counts)
    for _ in range(LONGER):
        short = [state for state in states(run) if state.more(_named(state, wanted)) is not None]
        more = {each.counted: each.more([]) or each.most for each in short}  # the most where only a measure is not known yet
        if not more:
            break
        counts |= more
        run = play(counts)
    return run, counts


def load_of(run: Run, *, lengthened: bool) -> Load:
    """The load of the first service of a run."""
    state = next(states(run), None)
    return Load() if state is None else _load(run, state, lengthened=lengthened)


def _named(state: State, asked: Collection[str]) -> list[str]:
    """Quantities of a service that are these measures."""
    return [name for name in state.known if _measure(state, name) in asked]


def _measure(state: State, name: str) -> str:
    return name.removeprefix(f"{state.name}." if state.name else "")


def _load(run: Run, state: State, *, lengthened: bool) -> Load:
    unsettled = state.brief or any(each.settling(run) for each in facts_of(run))
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
    return Load(state.grows, state.excess if math.isfinite(state.excess) else None, ranges, note)


def _away(part: float, half: float) -> float:
    """The lower end of a range, as a part of the value, with a further error whose half width is a logarithm."""
    return math.exp(-math.hypot(math.log(part), half)) if 0 < part <= 1 else min(part, 1.0)


def too_much(load: Load, replicas: int) -> Reason | None:
    """The reason that a load without a steady state is; None if the service may keep up."""
    if not load.grows:
        return None
    who = f" by each of {replicas}" if replicas > 1 else ""
    text = f"no steady state: {load.grows}{who}"
    return Reason(LOAD, text) if load.excess is None else Reason(LOAD, text, 1.0 + load.excess, 1.0, load.excess)


def within(value: float, ends: Ends | None, others: list[float]) -> Amount:
    """A number with the range in which it is known, as parts of it, and the values of further runs."""
    low, high = (1.0, 1.0) if ends is None else ends
    return Amount(value, min([value * low, *others]), math.inf if high is None else max([value * high, *others]))
