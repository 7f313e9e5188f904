"""Why a run took as long as it did, in words, tables and arithmetic of 100 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from hwsim import invariants
from hwsim.graph.opgraph import Label
from hwsim.results.result import Result
from hwsim.results.timeline import FEMTO
from hwsim.units import percent
from hwsim.views.explain.cause import Cause
from hwsim.views.explain.critical import Share
from hwsim.views.explain.derivation import Derivation, Line, fraction, seconds
from hwsim.views.explain.explanation import Explanation
from hwsim.views.explain.family import families
from hwsim.views.explain.measure import TIMES
from hwsim.views.explain.steps import Step
from hwsim.views.explain.what_if import LARGEST, WhatIf
from hwsim.views.kit import warned
from hwsim.views.summary.say import WIDTH, bar

CAUSES: Final = 12  # rows of a table; the rest is counted
STEPS: Final = 16
DERIVED: Final = 6
NAME: Final = 44
INSIDE: Final = 22  # where the words of a what-if begin
_JOIN: Final = re.compile(r"(?<=\d) (?=(?:[kMGTPEmunpf]?(?:s|B|b|FLOP|Hz|W)(?:/s)?|%|1/s|min|h|day)(?![A-Za-z]))")  # 16 GB/s


@invariants.guarded
def text(result: Result, found: Explanation, *, path: bool = False, derived: int = DERIVED) -> str:
    """The explanation in words and tables of 100 columns.  path: the critical path piece by piece."""
    return "\n".join(line.rstrip() for line in _lines(result, found, path, derived)) + "\n"


def _lines(result: Result, found: Explanation, path: bool, derived: int) -> Iterator[str]:
    yield from _wrap(f"{result.workload}  on  {result.machine}: {seconds(result.makespan_s)}", 0)
    if result.settings:
        yield from _wrap("set " + ", ".join(f"{key}={value}" for key, value in result.settings), 2)
    for event in result.events:
        yield from _wrap(f"event {event}", 2)
    yield from warned.lines(result.warnings)
    yield ""
    for sentence in found.sentences:
        yield from _wrap(sentence, 2)
    if not found.accounting:
        return
    yield from _heading("where the time goes, along the critical path")
    yield from _accounting(found.accounting, result.timeline.makespan_fs)
    yield from _heading("the critical path" if path else "the critical path, equal steps together (--path: every piece)")
    yield from _pieces(result, found) if path else _steps(found)
    yield from _heading("how long the ops take, and why")
    shown = found.derivations[:derived]
    for number, each in enumerate(shown):
        yield from [""] * (number > 0)
        yield from _derivation(each)
    if len(found.derivations) > len(shown):
        yield ""
        yield f"  and {_count(len(found.derivations) - len(shown), 'kind')} of ops more: --op NAME shows one, --json all"
    yield from _heading("what if one number of the files were twice as good, and the rest as it is")
    yield from _what_if(result, found)


def _accounting(shares: Sequence[Share], makespan: int) -> Iterator[str]:
    rows = families(shares)
    shown, rest = rows[:CAUSES], rows[CAUSES:]
    if rest:
        shown.append((f"{len(rest)} more", sum(time for _, time in rest)))  # whole
    width = max(len(_short(name)) for name, _ in (*shown, ("makespan", 0)))
    for name, time in shown:
        yield f"  {_short(name):<{width}}  {seconds(time / FEMTO):>9}  {percent(time / makespan):>6}  {bar(time / makespan)}"
    yield f"  {'makespan':<{width}}  {seconds(makespan / FEMTO):>9}  {'100 %':>6}"


def _steps(found: Explanation) -> Iterator[str]:
    yield f"  {'from':>9}  {'to':>9}  {'takes':>9}  op"
    shown = found.runs if len(found.runs) <= STEPS else (*found.runs[: STEPS - 4], *found.runs[-4:])
    for number, run in enumerate(shown):
        if len(shown) < len(found.runs) and number == STEPS - 4:
            yield f"  {'':>9}  {'':>9}  {'':>9}  ... {len(found.runs) - len(shown)} more ..."
        begin, end, took = seconds(run.start_s), seconds(run.end_s), seconds(run.end_s - run.start_s)
        if run.times == 1:
            yield f"  {begin:>9}  {end:>9}  {took:>9}  {_step(run.steps[0])}"
            continue
        yield f"  {begin:>9}  {end:>9}  {took:>9}  {run.times} times in turn:"
        for step in run.steps:
            yield f"  {'':>9}  {'':>9}  {seconds(step.time_s):>9}    {_step(step, times=run.times)}"


def _step(step: Step, times: int = 1) -> str:
    many = f" x {step.ops}" if step.ops > times else ""
    return f"{_short(called(step.label) + many)}{_because(step.label, step.cause)}"


def _pieces(result: Result, found: Explanation) -> Iterator[str]:
    flat = result.timeline.flat
    yield f"  {'from':>9}  {'to':>9}  {'takes':>9}  op"
    for piece in found.path:
        label, again = flat.graph.labels[int(flat.label[piece.op])], int(flat.iteration[piece.op])
        times = [seconds(each / FEMTO) for each in (piece.start_fs, piece.end_fs, piece.end_fs - piece.start_fs)]
        name = _short(called(label) + (f", iteration {again}" if again else ""))
        yield f"  {times[0]:>9}  {times[1]:>9}  {times[2]:>9}  {name}{_because(label, piece.cause)}"


def called(label: Label) -> str:
    """`add (busy) on cpu`, `step on gpu0`: what a step is called."""
    kind = "" if label.kind in {"op", label.name} else f" ({label.kind})"
    return f"{label.name}{kind}" + (f" on {label.device}" if label.device else "")


def _because(label: Label, cause: Cause) -> str:
    """What it waits for, unless that is its own time."""
    own = {f"{what} on {label.device}" if label.device else what for what in (label.name, label.kind)}
    said = cause.of_op if (cause.op, cause.name) == (label.name, label.device) else str(cause)
    return "" if said in own else f": {said}"


def _derivation(found: Derivation) -> Iterator[str]:
    device = found.devices[0] + (f" (and {len(found.devices) - 1} alike)" if len(found.devices) > 1 else "")
    name = found.name + (f" ({found.kind})" if found.kind not in {"op", found.name} else "")
    size = f"; each {fraction(found.size)} of what follows" if found.size != 1 else ""
    yield from _wrap(f"{name}" + (f" on {device}" if device else "") + f", {_count(found.count, 'op')}{size}", 2)
    if found.kind == "arrivals" and found.shortest_s < found.longest_s:
        yield from _wrap(f"time: given, {seconds(found.shortest_s)} to {seconds(found.longest_s)}   (workload)", 4)
        return
    if found.own_s:
        yield from _wrap(f"time: given = {seconds(found.own_s)}   (workload)", 4)
    told: set[tuple[str, str, str]] = set()
    for line in found.lines:
        yield from _line(line, told)
        told.update(line.inputs)
    yield from _wrap(f"alone: {found.alone}; {_took(found)}", 4)


def _line(line: Line, told: Collection[tuple[str, str, str]]) -> Iterator[str]:
    """The formula, the numbers put in, what comes out; then where the numbers not yet told are from."""
    binds, result = "   [binds]" if line.binds else "", seconds(line.time_s)
    if len(line.inputs) == 1 and line.formula == line.inputs[0][0]:
        yield from _wrap(f"{line.label}: {line.formula} = {line.inputs[0][1]}   ({line.inputs[0][2]}){binds}", 4)
        return
    parts = [line.formula, *([line.numbers] if line.numbers != line.formula else [])]
    whole = f"    {line.label}: {' = '.join([*parts, result])}{binds}"
    if len(whole) <= WIDTH:
        yield whole
    else:
        yield from _wrap(f"{line.label}: {parts[0]}", 4)
        for number in range(1, len(parts)):
            last = f" = {result}{binds}" if number == len(parts) - 1 else ""
            yield from _wrap(f"= {parts[number]}{last}", 8)
    for name, value, source in line.inputs:
        if (name, value, source) not in told:
            yield from _wrap(f"{name} = {value}   ({source})", 8)


def _took(found: Derivation) -> str:
    if found.longest_s <= found.alone_s * (1 + 1e-6) + 1e-14:
        how = "took that long" if found.count == 1 else "each took that long"
    else:
        low, high = seconds(found.shortest_s), seconds(found.longest_s)
        how = f"took {high}" if low == high else f"took {low} to {high}"
    return how + (f": {', '.join(found.because)}" if found.because else "")


def _what_if(result: Result, found: Explanation) -> Iterator[str]:
    if found.what_if is None:
        large = len(result.timeline) > LARGEST
        yield f"  not simulated: the run has more than {LARGEST:,} ops (--what-if does it)" if large else "  not simulated"
        return
    for each in found.what_if:
        told = "only together: " if each.together else "hypothetical: " if each.hypothetical else ""
        first, *rest = _wrap(f"{told}{each.change}{_then(each, found)}", INSIDE, deeper=INSIDE)
        yield f"  {_outcome(each, found)}  {first[INSIDE:]}"
        yield from rest
        for path, value in each.settings:
            yield f"{'':{INSIDE}}--set {_quoted(f'{path}={value}')}"
    if not found.what_if:
        yield "  nothing to try"
    yield from (line for said in left_out(found) for line in _wrap(said, 2))


def _outcome(each: WhatIf, found: Explanation) -> str:
    if each.makespan_fs is None:
        return "  for ever       "
    if found.measure is None:
        return f"{seconds(each.makespan_fs / FEMTO):>9}  {each.speedup:>5.2f} x"
    value = dict(each.measured).get(found.measure.name, 0.0)
    shown = seconds(value) if found.measure.name in TIMES else f"{_rate(value)}/s"
    return f"{shown:>9}  {each.speedup:>5.2f} x"


def _then(each: WhatIf, found: Explanation) -> str:
    if each.makespan_fs is None:
        return ": the ops would wait for each other"
    if found.measure is not None:
        others = ((name, value) for name, value in each.measured if name != found.measure.name)
        said = (f"{name} {seconds(value) if name in TIMES else _rate(value)}" for name, value in others)
        return f"; {', '.join(said)}"
    return "".join(f"; then {cause} {percent(time / each.makespan_fs)}" for cause, time in families(each.limited_by)[:1])


def _rate(value: float) -> str:
    """Three digits at least, and no 0 for what is more.

    >>> _rate(0.0543), _rate(12345.6)
    ('0.0543', '12,346')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or "*" in text else text


def left_out(found: Explanation) -> Iterator[str]:
    """What was not tried and why, in words."""
    if found.untried:
        yield f"and {found.untried} more that the run waits for less"
    for said in found.left:
        yield f"not tried: {said}"
    if found.measure is not None:
        yield f"The times are those of the service: {found.measure.words}."


def _heading(title: str) -> list[str]:
    return ["", title]


def _wrap(text: str, indent: int, *, deeper: int = 0) -> list[str]:
    """Lines that never part a number from its unit.  deeper: how far the second and later ones stand in."""
    kept, further = _JOIN.sub("\u00a0", text), " " * (deeper or indent + 2)
    lines = textwrap.wrap(kept, WIDTH, initial_indent=" " * indent, subsequent_indent=further, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME // 2 - 2]}...{name[-(NAME // 2 - 2) :]}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
