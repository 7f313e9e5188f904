"""What a teacher would say of a run: a few sentences, put together from what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hwsim.results.timeline import FEMTO
from hwsim.units import format_share
from hwsim.views.explain.derivation import seconds
from hwsim.views.explain.family import families
from hwsim.views.explain.measure import TIMES, Measure
from hwsim.views.explain.overlap import Activity
from hwsim.views.explain.what_if import Tried, WhatIf

SMALL: Final = 0.005  # of the run: not worth a sentence
MANY: Final = 3  # activities spoken of beside the main one
HELP: Final = 1.01  # a speed-up below it is none
COUNTED: Final = 100  # ops of a sort that are worth counting
MAIN: Final = 0.9  # of the run: what takes more of it is what everything else hides behind

# sort of ops -> (what a device does, doing it)
WORDS: Final = {
    "compute": ("computes", "computing"),
    "copy": ("copies", "copying"),
    "read": ("reads", "reading"),
    "write": ("writes", "writing"),
    "dispatch": ("issues ops", "issuing"),
    "return": ("returns from waiting", "returning from waiting"),
}


def sentences(makespan_fs: int, done: Sequence[Activity], tried: Tried | None) -> tuple[str, ...]:
    """What takes the time, what hides behind it, what does not, and what would help."""
    return tuple(_sentences(makespan_fs, done, tried)) if makespan_fs and done else ("Nothing takes any time.",)


def _sentences(makespan: int, done: Sequence[Activity], tried: Tried | None) -> Iterator[str]:
    idle = sum(one.path_fs for one in done if one.before_job)  # nothing is done then, so nothing hides behind it, nor it
    done = [one for one in done if not one.before_job]
    if idle >= SMALL * makespan or not done:
        yield f"For {seconds(idle / FEMTO)} ({format_share(idle / makespan)}) the run waits for the start of a job."
    coming = [one for one in done if one.before_request]
    for one in coming:
        length = "nearly all" if seconds(one.path_s) == seconds(makespan / FEMTO) else f"{seconds(one.path_s)} of"
        if one.path_fs >= SMALL * makespan:
            yield f"For {length} {seconds(makespan / FEMTO)} the run waits for requests to come."
    done = [one for one in done if one not in coming]
    if not done:
        return
    main, others = done[0], [one for one in done[1:] if max(one.path_fs, one.hidden_fs) >= SMALL * makespan]
    share = main.path_fs / makespan
    whole, part = seconds(makespan / FEMTO), seconds(main.path_s)
    part = "all" if main.path_fs == makespan else "nearly all" if part == whole else f"{part} of"
    mostly = "" if main.bound_fs >= MAIN * main.path_fs else "mostly "
    limit = f", limited {mostly}by {main.bound}" if main.bound else ""
    yield f"{_subject(main.waited or main.device)} {_verb(main)} for {part} {whole}{limit}."
    if main.hidden_fs >= SMALL * makespan:
        also = f"{_subject(main.device)} {_verb(main)} for another {seconds(main.hidden_s)}"
        yield f"{also}, in which the run waits for something else."
    serial = all(one.hidden_fs == 0 and one.work_fs == one.busy_fs for one in done)
    if serial and len(done) > 1:
        adds = [f"{_doing(one)} adds {seconds(one.path_s)} ({format_share(one.path_fs / makespan)})" for one in others[:MANY]]
        rest = f": {', '.join(adds)}" if adds else ""
        yield f"One thing happens at a time, nothing hides behind anything else{rest}."
    else:
        behind = "behind it" if share >= MAIN else "behind the rest"
        for one in others[:MANY]:
            yield _hiding(one, makespan, behind, apart=one.sort == main.sort)
    if tried is not None and tried.measure is not None:
        yield from _of_service(tried, tried.measure)
    elif tried is not None and tried.rows:
        yield _help(tried.rows)


def _of_service(tried: Tried, measure: Measure) -> Iterator[str]:
    """What limits a service, by its own measure: arrivals fix the time of the run, whatever the machine."""
    waits = f", of which a request waits up to {seconds(measure.wait_s)} to begin" if measure.wait_s > 0 else ""
    waits = waits if measure.name in TIMES else ""
    if measure.beside:
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


def _hiding(one: Activity, makespan: int, behind: str, *, apart: bool) -> str:
    """How much of it the run had to wait for.  apart: another device does the like."""
    doing = _doing(one)
    if apart and one.sort in WORDS and one.device and _object(one.device) not in doing:
        doing += f" on {_object(one.device)}"
    doing = (doing[0].upper() + doing[1:] if one.sort in WORDS else doing) + f", {seconds(one.busy_s)} in all,"
    if one.path_fs == 0:
        return f"{doing} hides {behind}, all of it."
    left = seconds(one.path_s)
    if one.hidden_fs == 0:
        return f"{doing} hides behind nothing: the run waits for all of it."
    if 2 * one.hidden_fs < one.busy_fs:
        waits = f"the run waits for {left} of it ({format_share(one.path_fs / makespan)})"
        return f"{doing} hides {behind} for {seconds(one.hidden_s)} only; {waits}."
    if one.alone not in {"first", "last"}:
        return f"{doing} hides {behind}, all but {left}."
    counted = f" ({one.count - 1} of {one.count} hide, the {one.alone} one cannot)" if one.count <= COUNTED else ""
    return f"{doing} hides {behind}, all but the {one.alone} {left}{counted}."


def _help(rows: Sequence[WhatIf]) -> str:
    best = rows[0]
    if best.makespan_s is None or best.speedup < HELP:
        return "No single number that is twice as good makes it more than 1 % faster."
    then = f"; then the limit is {families(best.limited_by)[0][0]}" if best.limited_by else ""
    at_once = ", only together" if best.together else ", a hypothetical change" if best.hypothetical else ""
    return f"What helps most is {best.change}{at_once}: {seconds(best.makespan_s)}, {best.speedup:.3g} times as fast{then}."


def _subject(device: str) -> str:
    """The device: `The GPU`, `The disk`, `gpu*`."""
    if not device:
        return "The program"
    if device in {"cpu", "gpu", "nic"}:
        return f"The {device.upper()}"
    return f"The {device}" if device.isalpha() else device


def _verb(one: Activity) -> str:
    if one.sort in WORDS:
        return WORDS[one.sort][0]
    return f"is busy with {one.names[0]}" if len(one.names) == 1 else "is busy"


def _doing(one: Activity) -> str:
    name = f" {one.names[0]}" if len(one.names) == 1 and one.names[0] != one.sort else ""
    where = f" on {_object(one.device)}" if one.device else ""
    match one.sort:
        case "dispatch" | "return":
            return WORDS[one.sort][1]
        case "compute":
            return f"computing{where}"
        case _ if one.sort in WORDS:
            return f"{WORDS[one.sort][1]}{name}"
    return f"{one.names[0]}{where}" if len(one.names) == 1 else f"other work{where}"


def _object(device: str) -> str:
    if device in {"cpu", "gpu", "nic"}:
        return f"the {device.upper()}"
    return f"the {device}" if device.isalpha() else device
