"""An explanation of a run in sentences, tables and arithmetic, 100 columns wide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from hwsim.doors import Place, facts_of
from hwsim.formats import percent
from hwsim.graph.opgraph import Label
from hwsim.results import invariants
from hwsim.results.cause import Cause
from hwsim.results.critical import Share, at_paces, families
from hwsim.results.result import Result
from hwsim.views.explain.derivation import Derivation, Line, duration, fraction, seconds
from hwsim.views.explain.explanation import Explanation
from hwsim.views.explain.measure import TIMES
from hwsim.views.explain.steps import Step
from hwsim.views.explain.what_if import LARGEST, WhatIf
from hwsim.views.interval import say as interval
from hwsim.views.kit import warned
from hwsim.views.kit.lines import WIDTH, bar, wrapped

CAUSES: Final = 12  # rows of a table; the rest is counted
STEPS: Final = 16
DERIVED: Final = 6
NAME: Final = 44
INSIDE: Final = 22  # column at which the words of a what-if begin


@invariants.guarded
def text(explanation: Explanation, *, path: bool = False, derived: int = DERIVED) -> str:
    """The explanation in sentences and tables of 100 columns.

    Args:
        path: print the critical path piece by piece.
        derived: largest number of derivations.
    """
    return "\n".join(line.rstrip() for line in _lines(explanation, path, derived)) + "\n"


def _lines(explanation: Explanation, path: bool, derived: int) -> Iterator[str]:
    result = explanation.run
    yield from wrapped(f"{result.workload}  on  {result.machine}: {seconds(result.makespan_s)}", 0)
    if result.settings:
        yield from wrapped("set " + ", ".join(f"{key}={value}" for key, value in result.settings), 2)
    for event in result.events:
        yield from wrapped(f"event {event}", 2)
    yield from warned.lines(result.warnings)
    yield from _sections(result, "first")
    if result.only_requests:
        return
    yield ""
    for sentence in explanation.sentences:
        yield from wrapped(sentence, 2)
    yield from _sections(result, "requests")
    if not explanation.accounting:
        return
    yield from _heading("where the time goes, along the critical path")
    yield from _accounting(explanation.accounting, result.timeline.makespan_fs)
    yield from _sections(result, "accounting")
    yield from _heading("how sure that is, and what makes it unsure")
    yield from (
        line
        for title, text in interval.lines(result.interval, kernels=result.of_kernels)
        for line in wrapped(f"{title}: {text}", 2)
    )
    yield from interval.table(result.interval)
    yield from _heading("the critical path" if path else "the critical path, equal steps together (--path: every piece)")
    yield from _pieces(explanation) if path else _steps(explanation)
    yield from _heading("how long the ops take, and why")
    shown = explanation.derivations[:derived]
    for number, derivation in enumerate(shown):
        yield from [""] * (number > 0)
        yield from _derivation(derivation)
    if len(explanation.derivations) > len(shown):
        yield ""
        yield f"  and {_count(len(explanation.derivations) - len(shown), 'kind')} of ops more: --op NAME shows one, --json all"
    yield from _heading("what if one number of the files were twice as good, and the rest as it is")
    yield from _what_if(explanation)


def _sections(result: Result, place: Place) -> Iterator[str]:
    """What the families of the run have to say at a place."""
    for each in facts_of(result):
        yield from each.explained(result, place)


def _accounting(shares: Sequence[Share], makespan: int) -> Iterator[str]:
    rows = [(name, time) for name, time, _ in families(shares)]
    shown, rest = rows[:CAUSES], rows[CAUSES:]
    if rest:
        shown.append((f"{len(rest)} more", sum(time for _, time in rest)))  # integers
    width = max(len(_short(name)) for name, _ in (*shown, ("makespan", 0)))
    for name, time in shown:
        yield f"  {_short(name):<{width}}  {duration(time):>9}  {percent(time / makespan):>6}  {bar(time / makespan)}"
    yield f"  {'makespan':<{width}}  {duration(makespan):>9}  {'100 %':>6}"


def _steps(explanation: Explanation) -> Iterator[str]:
    yield f"  {'from':>9}  {'to':>9}  {'takes':>9}  op"
    shown = explanation.runs if len(explanation.runs) <= STEPS else (*explanation.runs[: STEPS - 4], *explanation.runs[-4:])
    for number, run in enumerate(shown):
        if len(shown) < len(explanation.runs) and number == STEPS - 4:
            yield f"  {'':>9}  {'':>9}  {'':>9}  ... {len(explanation.runs) - len(shown)} more ..."
        span = _span(run.start_fs, run.end_fs)
        if run.times == 1:
            yield f"{span}  {_step(run.steps[0])}"
            continue
        yield f"{span}  {run.times} times in turn:"
        for step in run.steps:
            yield f"  {'':>9}  {'':>9}  {duration(step.time_fs):>9}    {_step(step, times=run.times)}"


def _span(start_fs: int, end_fs: int) -> str:
    return f"  {duration(start_fs):>9}  {duration(end_fs):>9}  {duration(end_fs - start_fs):>9}"


def _step(step: Step, times: int = 1) -> str:
    many = f" x {step.ops}" if step.ops > times else ""
    return f"{_short(called(step.label) + many)}{_because(step.label, step.cause)}"


def _pieces(explanation: Explanation) -> Iterator[str]:
    timeline = explanation.run.timeline
    flat = timeline.flat
    yield f"  {'from':>9}  {'to':>9}  {'takes':>9}  op"
    for piece in at_paces(timeline, explanation.path):
        label, iteration = flat.graph.labels[int(flat.label[piece.op])], int(flat.iteration[piece.op])
        name = _short(called(label) + (f", iteration {iteration}" if iteration else ""))
        yield f"{_span(piece.start_fs, piece.end_fs)}  {name}{_because(label, piece.cause)}"


def called(label: Label) -> str:
    """The name of a step: `add (busy) on cpu`, `step on gpu0`."""
    kind = "" if label.kind in {"op", label.name} else f" ({label.kind})"
    return f"{label.name}{kind}" + (f" on {label.device}" if label.device else "")


def _because(label: Label, cause: Cause) -> str:
    """The cause after a colon; "" if it is the step's own time."""
    steps = {f"{name} on {label.device}" if label.device else name for name in (label.name, label.kind)}
    reason = cause.of_op if (cause.op, cause.name) == (label.name, label.device) else str(cause)
    return "" if reason in steps else f": {reason}"


def _derivation(derivation: Derivation) -> Iterator[str]:
    device = derivation.devices[0] + (f" (and {len(derivation.devices) - 1} alike)" if len(derivation.devices) > 1 else "")
    name = derivation.name + (f" ({derivation.kind})" if derivation.kind not in {"op", derivation.name} else "")
    size = f"; each {fraction(derivation.size)} of what follows" if derivation.size != 1 else ""
    yield from wrapped(f"{name}" + (f" on {device}" if device else "") + f", {_count(derivation.count, 'op')}{size}", 2)
    if derivation.kind == "arrivals" and derivation.shortest_s < derivation.longest_s:
        yield from wrapped(f"time: given, {seconds(derivation.shortest_s)} to {seconds(derivation.longest_s)}   (workload)", 4)
        return
    if derivation.own_s:
        yield from wrapped(f"time: given = {seconds(derivation.own_s)}   (workload)", 4)
    printed: set[tuple[str, str, str]] = set()
    for line in derivation.lines:
        yield from _line(line, printed)
        printed.update(line.inputs)
    yield from wrapped(f"alone: {derivation.alone}; {_took(derivation)}", 4)
    if derivation.spare_s is not None and derivation.spare_s[0]:
        yield from wrapped(f"spare: {spare(derivation.count, *derivation.spare_s)}", 4)


def spare(count: int, ops: int, low: float, high: float) -> str:
    """The spare time of ops: how much later they could end before the run does."""
    who = "it " if count == 1 else f"{ops} of {count} " if ops < count else "each "
    least, most = seconds(low), seconds(high)
    return f"{who}could end {least if least == most else f'{least} to {most}'} later without delaying the end, all else as it is"


def _line(line: Line, printed: Collection[tuple[str, str, str]]) -> Iterator[str]:
    """The formula, the numbers put in, the result; then the sources of the numbers that are not printed yet."""
    binds, result = "   [binds]" if line.binds else "", seconds(line.time_s)
    if len(line.inputs) == 1 and line.formula == line.inputs[0][0]:
        yield from wrapped(f"{line.label}: {line.formula} = {line.inputs[0][1]}   ({line.inputs[0][2]}){binds}", 4)
        return
    parts = [line.formula, *([line.numbers] if line.numbers != line.formula else [])]
    in_one = f"    {line.label}: {' = '.join([*parts, result])}{binds}"
    if len(in_one) <= WIDTH:
        yield in_one
    else:
        yield from wrapped(f"{line.label}: {parts[0]}", 4)
        for number in range(1, len(parts)):
            last = f" = {result}{binds}" if number == len(parts) - 1 else ""
            yield from wrapped(f"= {parts[number]}{last}", 8)
    for name, value, source in line.inputs:
        if (name, value, source) not in printed:
            yield from wrapped(f"{name} = {value}   ({source})", 8)


def _took(derivation: Derivation) -> str:
    if derivation.longest_s <= derivation.alone_s * (1 + 1e-6) + 1e-14:
        how = "took that long" if derivation.count == 1 else "each took that long"
    else:
        low, high = seconds(derivation.shortest_s), seconds(derivation.longest_s)
        how = f"took {high}" if low == high else f"took {low} to {high}"
    return how + (f": {', '.join(derivation.because)}" if derivation.because else "")


def _what_if(explanation: Explanation) -> Iterator[str]:
    if explanation.what_if is None:
        large = len(explanation.run.timeline) > LARGEST
        yield f"  not simulated: the run has more than {LARGEST:,} ops (--what-if does it)" if large else "  not simulated"
        return
    for row in explanation.what_if:
        sort = "only together: " if row.together else "hypothetical: " if row.hypothetical else ""
        first, *rest = wrapped(f"{sort}{row.change}{_then(row, explanation)}", INSIDE, deeper=INSIDE)
        yield f"  {_outcome(row, explanation)}  {first[INSIDE:]}"
        yield from rest
        for path, value in row.settings:
            yield f"{'':{INSIDE}}--set {_quoted(f'{path}={value}')}"
    if not explanation.what_if:
        yield "  nothing to try"
    yield from (line for text in left_out(explanation) for line in wrapped(text, 2))


def _outcome(row: WhatIf, explanation: Explanation) -> str:
    if row.makespan_fs is None:
        return "  for ever       "
    if explanation.measure is None:
        return f"{duration(row.makespan_fs):>9}  {row.speedup:>5.2f} x"
    value = dict(row.measured).get(explanation.measure.name, 0.0)
    shown = seconds(value) if explanation.measure.name in TIMES else f"{_rate(value)}/s"
    return f"{shown:>9}  {row.speedup:>5.2f} x"


def _then(row: WhatIf, explanation: Explanation) -> str:
    if row.makespan_fs is None:
        return ": the ops would wait for each other"
    if explanation.measure is not None:
        others = ((name, value) for name, value in row.measured if name != explanation.measure.name)
        return f"; {', '.join(f'{name} {seconds(value) if name in TIMES else _rate(value)}' for name, value in others)}"
    return "".join(f"; then {cause} {percent(time / row.makespan_fs)}" for cause, time, _ in families(row.limited_by)[:1])


def _rate(value: float) -> str:
    """A rate with at least three digits.

    >>> _rate(0.0543), _rate(12345.6)
    ('0.0543', '12,346')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or "*" in text else text


def left_out(explanation: Explanation) -> Iterator[str]:
    """Changes that were not tried, with the reasons."""
    if explanation.untried:
        yield f"and {explanation.untried} more that the run waits for less"
    for reason in explanation.left:
        yield f"not tried: {reason}"
    if explanation.measure is not None:
        yield f"The times are those of the service: {explanation.measure.words}."


def _heading(title: str) -> list[str]:
    return ["", title]


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME // 2 - 2]}...{name[-(NAME // 2 - 2) :]}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
