"""An explanation of a run in a few sentences, made from its activities and what-ifs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hwsim.formats import family, format_share
from hwsim.results.critical import families
from hwsim.views.explain.derivation import duration, seconds
from hwsim.views.explain.measure import TIMES, Measure
from hwsim.views.explain.overlap import Activity
from hwsim.views.explain.what_if import Tried, WhatIf

SMALL: Final = 0.005  # of the run: not worth a sentence
MANY: Final = 3  # activities that are mentioned in addition to the main one
HELP: Final = 1.01  # a speed-up below it is none
COUNTED: Final = 100  # largest number of ops that is mentioned
MAIN: Final = 0.9  # part of the run: an activity that takes more of it hides everything else

WORDS: Final = {  # of sorts of ops
    "compute": "computing", "copy": "copying", "read": "reading", "write": "writing", "dispatch": "issuing",
    "return": "returning from waiting",
}  # fmt: skip


NOUNS: Final = {"convolution": "convolutions", "copy": "copies", "access": "accesses", "read": "reads", "write": "writes"}


def sentences(makespan_fs: int, done: Sequence[Activity], tried: Tried | None) -> tuple[str, ...]:
    """Sentences on the main activity, on activities that overlap it or do not, and on changes that would help."""
    return tuple(_sentences(makespan_fs, done, tried)) if makespan_fs and done else ("Nothing takes any time.",)


def _sentences(makespan: int, done: Sequence[Activity], tried: Tried | None) -> Iterator[str]:
    coming = [activity for activity in done if activity.awaited]
    done = [activity for activity in done if not activity.awaited]
    yield from (_main(each, makespan) for each in coming if not done or each.path_fs > done[0].path_fs)
    if not done:
        return
    main, others = done[0], [rest for rest in done[1:] if max(rest.path_fs, rest.hidden_fs) >= SMALL * makespan]
    share = main.path_fs / makespan
    yield _main(main, makespan)
    yield from (_main(each, makespan) for each in coming if SMALL * makespan <= each.path_fs <= main.path_fs)
    if main.hidden_fs >= SMALL * makespan:
        ops, many = _ops(main)
        also = f"{ops} {'take' if many > 1 else 'takes'} another {duration(main.hidden_fs)}"
        yield f"{also}, in which the run waits for something else."
    serial = all(activity.hidden_fs == 0 and activity.work_fs == activity.busy_fs for activity in done)
    if serial and len(done) > 1:
        adds = [
            f"{_doing(rest)} adds {duration(rest.path_fs)} ({format_share(rest.path_fs / makespan)})" for rest in others[:MANY]
        ]
        yield f"One thing happens at a time, nothing hides behind anything else{': ' if adds else ''}{', '.join(adds)}."
    else:
        behind = "behind it" if share >= MAIN else "behind the rest"
        for rest in others[:MANY]:
            yield _hiding(rest, makespan, behind, apart=rest.sort == main.sort)
    if tried is not None and tried.measure is not None:
        yield from _of_service(tried, tried.measure)
    elif tried is not None and tried.rows:
        yield _help(tried.rows)


def _main(activity: Activity, makespan: int) -> str:
    """An activity, its part of the run and what binds it."""
    total, part = duration(makespan), duration(activity.path_fs)
    length = "all" if activity.path_fs == makespan else "nearly all" if part == total else f"{part} of"
    share = "" if length == "all" else f" ({format_share(activity.path_fs / makespan)})"
    if activity.awaited:
        return f"Waiting for {activity.awaited} takes {length} {total}{share}."
    mostly = "" if activity.bound_fs >= MAIN * activity.path_fs else "mostly "
    limit = f", bound {mostly}by {activity.bound}" if activity.bound else ""
    ops, many = _ops(activity)
    return f"{ops} {'take' if many > 1 else 'takes'} {length} {total}{share}{limit}."


def _ops(activity: Activity) -> tuple[str, int]:
    """The ops by name, those first that the run waits for longest, and their device; and how many names."""
    names = list(dict.fromkeys(family(name) for name in activity.names))
    first = names[0] if len(names) > 1 else activity.names[0]
    if first == activity.sort and first in WORDS:
        first = WORDS[first].capitalize()
    first, *rest = [f"'{name}'" if " " in name else name for name in (first, *names[1:])]
    more = f"{len(rest)} more {NOUNS.get(activity.sort, 'ops')}" if len(rest) > 1 else "".join(rest)
    device = activity.waited or activity.device
    return f"{first}{f' and {more}' if more else ''}{f' on {_object(device)}' if device else ''}", len(names)


def _of_service(tried: Tried, measure: Measure) -> Iterator[str]:
    """Sentences on a service by its own measure, because arrivals fix the time of the run."""
    waits = f", of which a request waits up to {seconds(measure.wait_s)} to begin" if measure.wait_s > 0 else ""
    waits = waits if measure.name in TIMES else ""
    if measure.concurrent:
        yield "Arrivals decide when the run ends, so what helps is told of the service, not of the run."
    yield f"The service is measured by its {measure.words}: {_measured(measure.name, measure.value)}{waits}."
    best = tried.rows[0] if tried.rows else None
    if best is None or best.speedup < HELP:
        yield "No single number that is twice as good makes it more than 1 % better."
        return
    value = dict(best.measured)[measure.name]
    yield f"What helps it most is {best.change}: {_measured(measure.name, value)}, {best.speedup:.3g} times as good."


def _measured(name: str, value: float) -> str:
    return seconds(value) if name in TIMES else f"{value:,.4g} 1/s"


def _hiding(activity: Activity, makespan: int, behind: str, *, apart: bool) -> str:
    """The part of an activity that overlaps others.

    Args:
        apart: whether another device does work of the same sort.
    """
    doing = _doing(activity)
    if apart and activity.sort in WORDS and activity.device and _object(activity.device) not in doing:
        doing += f" on {_object(activity.device)}"
    doing = (doing[0].upper() + doing[1:] if activity.sort in WORDS else doing) + f", {duration(activity.busy_fs)} in all,"
    if activity.path_fs == 0:
        return f"{doing} hides {behind}, all of it."
    left = duration(activity.path_fs)
    if activity.hidden_fs == 0:
        return f"{doing} hides behind nothing: the run waits for all of it."
    if 2 * activity.hidden_fs < activity.busy_fs:
        waits = f"the run waits for {left} of it ({format_share(activity.path_fs / makespan)})"
        return f"{doing} hides {behind} for {duration(activity.hidden_fs)} only; {waits}."
    if activity.alone not in {"first", "last"}:
        return f"{doing} hides {behind}, all but {left}."
    counted = (
        f" ({activity.count - 1} of {activity.count} hide, the {activity.alone} one cannot)" if activity.count <= COUNTED else ""
    )
    return f"{doing} hides {behind}, all but the {activity.alone} {left}{counted}."


def _help(rows: Sequence[WhatIf]) -> str:
    best = rows[0]
    if best.makespan_fs is None or best.speedup < HELP:
        return "No single number that is twice as good makes it more than 1 % faster."
    then = f"; then the limit is {families(best.limited_by)[0][0]}" if best.limited_by else ""
    at_once = ", only together" if best.together else ", a hypothetical change" if best.hypothetical else ""
    return f"What helps most is {best.change}{at_once}: {duration(best.makespan_fs)}, {best.speedup:.3g} times as fast{then}."


def _doing(activity: Activity) -> str:
    name = f" {activity.names[0]}" if len(activity.names) == 1 and activity.names[0] != activity.sort else ""
    where = f" on {_object(activity.device)}" if activity.device else ""
    match activity.sort:
        case "dispatch" | "return":
            return WORDS[activity.sort]
        case "compute":
            return f"computing{where}"
        case _ if activity.sort in WORDS:
            return f"{WORDS[activity.sort]}{name}"
    more = len(activity.names) - 1
    return f"{activity.names[0]}{f' and {more} more' if more else ''}{where}"


def _object(device: str) -> str:
    """The device inside a sentence: `the GPU`, `the disk`, `gpu*`."""
    if device in {"cpu", "gpu", "nic"}:
        return f"the {device.upper()}"
    return f"the {device}" if device in {"disk", "memory", "host"} else device
