"""The explanation of a run as text: sentences, tables and derivations, 100 columns wide."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from hwsim.families_interface import Place, family_reports
from hwsim.formats import format_quantity, format_share, percent, pluralized
from hwsim.graph.opgraph import Label
from hwsim.results import invariants
from hwsim.results.cause import Cause
from hwsim.results.critical import Share, families, split_at_paces
from hwsim.results.result import Result
from hwsim.ticks import FEMTO
from hwsim.views.explain.derivation import Derivation, DerivationLine, duration, fraction, seconds
from hwsim.views.explain.explanation import Explanation
from hwsim.views.explain.measure import TIMES
from hwsim.views.explain.sentences import bound_after
from hwsim.views.explain.steps import PathStep
from hwsim.views.explain.what_if import LARGEST, WhatIf
from hwsim.views.interval import say as interval
from hwsim.views.kit import warning_lines
from hwsim.views.kit.lines import WIDTH, bar, wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle

CAUSES: Final = 12  # largest number of causes; the others are joined
STEPS: Final = 16  # largest number of steps
DERIVED: Final = 6  # largest number of derivations
NAME: Final = 44  # width of the name of a cause or step (characters)
INSIDE: Final = 19  # indent of the description of a change (characters)
SHARES: Final = 7  # largest number of bounds and of activities
SHARE_NAME: Final = 72  # largest width of a name in the tables of shares (characters)
WORTH: Final = 1.005  # least speedup of a change that is shown without -v


@invariants.check_report
def text(explanation: Explanation, *, path: bool = False, op: bool = False, verbose: bool = False) -> str:
    """Return the explanation as text, 100 columns wide.

    Args:
        explanation: explanation.
        path: whether to list every segment of the critical path instead.
        op: whether to show the derivations of the requested ops instead.
        verbose: whether to add causes by full name, the critical path by op, the longest derivations, and the settings of
            all changes.
    """
    return "\n".join(line.rstrip() for line in _lines(explanation, path, op, verbose)) + "\n"


def _lines(explanation: Explanation, path: bool, op: bool, verbose: bool) -> Iterator[str]:
    result = explanation.run
    during = "".join(facts.during(result) for facts in family_reports(result))
    yield from wrap_lines(f"{result.workload}, on {result.machine}: {seconds(result.makespan_s)}{during}", 0)
    if result.settings:
        yield from wrap_lines("set " + ", ".join(f"{key}={value}" for key, value in result.settings), 2)
    for event in result.events:
        yield from wrap_lines(f"event: {event}", 2)
    if op or path:
        yield ""
        yield from _pieces(explanation) if path else _derivations(explanation, len(explanation.derivations))
        return
    yield from _sections(result, "first")
    if result.only_requests:
        if result.warnings:
            yield ""
            yield from warning_lines.lines(result.warnings)
        return
    yield ""
    for sentence in explanation.sentences:
        yield from wrap_lines(sentence, 2)
    yield from _sections(result, "requests")
    if explanation.accounting:
        yield from _accounting(explanation, result.timeline.makespan_fs)
        yield from _sections(result, "accounting")
        if verbose:
            yield from _heading("critical path by cause")
            yield from _causes(explanation.accounting, result.timeline.makespan_fs)
        yield from _heading("what if: one parameter changed, the others fixed")
        yield from _what_if(explanation, verbose)
        yield from _heading("uncertainty")
        yield from wrap_lines(f"{interval.TITLE} {interval.line(result.interval, kernels=result.of_kernels)}", 2)
        if verbose and (evidence := interval.evidence(result.interval)):
            yield from wrap_lines(evidence, 2)
        yield from interval.table(result.interval)
        if verbose:
            yield from _heading("critical path by op, repeated steps together")
            yield from _steps(explanation)
            yield from _heading("how long the ops take, and why")
            yield from _derivations(explanation, DERIVED)
    if result.warnings:
        yield ""
        yield from warning_lines.lines(result.warnings)
    if explanation.accounting and not verbose:
        yield ""
        yield "  critical path by op: --path    derivation of an op: --op NAME    everything: -v"


def _accounting(explanation: Explanation, makespan_fs: int) -> Iterator[str]:
    """Yield the critical path by bound, and beside it by activity."""
    done = explanation.activities
    parts = [(part.bound.full, part.time_fs) for part in done.parts]
    rows = [(row.name, row.path_fs) for row in done.rows if row.path_fs]
    left = _shares("critical path by bound", parts, makespan_fs)
    right = _shares(f"by {'op' if done.of_ops else 'activity'}", rows, makespan_fs)
    width = max(map(len, left)) + 4
    yield ""
    if width + max(map(len, right)) > WIDTH:
        yield from [*left, "", *right]
        return
    for bound_line, activity_line in zip_longest(left, right, fillvalue=""):
        yield f"{bound_line:<{width}}{activity_line}" if activity_line else bound_line


def _shares(title: str, rows: Sequence[tuple[str, int]], makespan_fs: int) -> list[str]:
    """Return times with their shares of the run; rows beyond the largest ones are joined."""
    shown, rest = list(rows[:SHARES]), rows[SHARES:]
    if rest:
        shown.append((f"{len(rest)} more", sum(time for _, time in rest)))  # integers
    return align_columns([
        Column(title, [cut_middle(name, SHARE_NAME) for name, _ in shown], right=False),
        Column("time", [format_quantity(time / FEMTO, "s") for _, time in shown]),
        Column("share", [format_share(time / makespan_fs) for _, time in shown]),
    ])  # fmt: skip


def _derivations(explanation: Explanation, most: int) -> Iterator[str]:
    """Yield the derivations of the durations of ops."""
    shown = explanation.derivations[:most]
    for number, derivation in enumerate(shown):
        yield from [""] * (number > 0)
        yield from _derivation(derivation)
    if len(explanation.derivations) > len(shown):
        yield ""
        yield f"  {pluralized(len(explanation.derivations) - len(shown), 'kind')} of ops more: --op NAME shows one, --json all"


def _sections(result: Result, place: Place) -> Iterator[str]:
    """Yield the lines that the workload families of the run add at a place."""
    for facts in family_reports(result):
        yield from facts.explained(result, place)


def _causes(shares: Sequence[Share], makespan: int) -> Iterator[str]:
    rows = [(name, time) for name, time, _ in families(shares)]
    shown, rest = rows[:CAUSES], rows[CAUSES:]
    if rest:
        shown.append((f"{len(rest)} more", sum(time for _, time in rest)))  # integers
    width = max(len(_short(name)) for name, _ in (*shown, ("makespan", 0)))
    for name, time in shown:
        yield f"  {_short(name):<{width}}  {duration(time):>9}  {percent(time / makespan):>6}  {bar(time / makespan)}"
    yield f"  {'makespan':<{width}}  {duration(makespan):>9}  {'100 %':>6}"


def _steps(explanation: Explanation) -> Iterator[str]:
    yield f"  {'from':>9}  {'to':>9}  {'time':>9}  op"
    shown = explanation.runs if len(explanation.runs) <= STEPS else (*explanation.runs[: STEPS - 4], *explanation.runs[-4:])
    for number, run in enumerate(shown):
        if len(shown) < len(explanation.runs) and number == STEPS - 4:
            yield f"  {'':>9}  {'':>9}  {'':>9}  ... {len(explanation.runs) - len(shown)} more ..."
        span = _span(run.start_fs, run.end_fs)
        if run.times == 1:
            yield f"{span}  {_step(run.steps[0])}"
            continue
        yield f"{span}  {run.times} times:"
        for step in run.steps:
            yield f"  {'':>9}  {'':>9}  {duration(step.time_fs):>9}    {_step(step, times=run.times)}"


def _span(start_fs: int, end_fs: int) -> str:
    return f"  {duration(start_fs):>9}  {duration(end_fs):>9}  {duration(end_fs - start_fs):>9}"


def _step(step: PathStep, times: int = 1) -> str:
    repeats = f" x {step.ops}" if step.ops > times else ""
    return f"{_short(step_title(step.label) + repeats)}{_because(step.label, step.cause)}"


def _pieces(explanation: Explanation) -> Iterator[str]:
    timeline = explanation.run.timeline
    flat = timeline.flat
    yield f"  {'from':>9}  {'to':>9}  {'time':>9}  op"
    for piece in split_at_paces(timeline, explanation.path):
        label, iteration = flat.graph.labels[int(flat.label[piece.op])], int(flat.iteration[piece.op])
        name = _short(step_title(label) + (f", iteration {iteration}" if iteration else ""))
        yield f"{_span(piece.start_fs, piece.end_fs)}  {name}{_because(label, piece.cause)}"


def step_title(label: Label) -> str:
    """Return the name of a step, such as `add (busy) on cpu` or `step on gpu0`."""
    kind = "" if label.kind in {"op", label.name} else f" ({label.kind})"
    return f"{label.name}{kind}" + (f" on {label.device}" if label.device else "")


def _because(label: Label, cause: Cause) -> str:
    """Return the cause after a colon; "" if it is the own time of the step."""
    steps = {f"{name} on {label.device}" if label.device else name for name in (label.name, label.kind)}
    reason = cause.of_op if (cause.op, cause.name) == (label.name, label.device) else str(cause)
    return "" if reason in steps else f": {reason}"


def _derivation(derivation: Derivation) -> Iterator[str]:
    device = derivation.devices[0] + (f" (and {len(derivation.devices) - 1} identical)" if len(derivation.devices) > 1 else "")
    name = derivation.name + (f" ({derivation.kind})" if derivation.kind not in {"op", derivation.name} else "")
    size = f"; each {fraction(derivation.size)} of what follows" if derivation.size != 1 else ""
    yield from wrap_lines(f"{name}" + (f" on {device}" if device else "") + f", {pluralized(derivation.count, 'op')}{size}", 2)
    if derivation.kind == "arrivals" and derivation.min_s < derivation.max_s:
        yield from wrap_lines(f"time: given, {seconds(derivation.min_s)} to {seconds(derivation.max_s)}   (workload)", 4)
        return
    if derivation.own_s:
        yield from wrap_lines(f"time: given = {seconds(derivation.own_s)}   (workload)", 4)
    printed: set[tuple[str, str, str]] = set()
    for line in derivation.lines:
        yield from _line(line, printed)
        printed.update(line.inputs)
    yield from wrap_lines(f"unloaded: {derivation.unloaded}; {_took(derivation)}", 4)
    if derivation.slack_s is not None and derivation.slack_s[0]:
        yield from wrap_lines(f"spare: {spare(derivation.count, *derivation.slack_s)}", 4)


def spare(count: int, ops: int, low: float, high: float) -> str:
    """Return the slack of ops in words."""
    who = "it " if count == 1 else f"{ops} of {count} " if ops < count else "each "
    least, most = seconds(low), seconds(high)
    return f"{who}could end {least if least == most else f'{least} to {most}'} later without delaying the end, all else as it is"


def _line(line: DerivationLine, printed: Collection[tuple[str, str, str]]) -> Iterator[str]:
    """Yield formula, substituted numbers and result of a line, then the sources of numbers not yet printed."""
    binds, result = "   [bound]" if line.binding else "", seconds(line.time_s)
    if len(line.inputs) == 1 and line.formula == line.inputs[0][0]:
        yield from wrap_lines(f"{line.label}: {line.formula} = {line.inputs[0][1]}   ({line.inputs[0][2]}){binds}", 4)
        return
    parts = [line.formula, *([line.numbers] if line.numbers != line.formula else [])]
    in_one = f"    {line.label}: {' = '.join([*parts, result])}{binds}"
    if len(in_one) <= WIDTH:
        yield in_one
    else:
        yield from wrap_lines(f"{line.label}: {parts[0]}", 4)
        for number in range(1, len(parts)):
            last = f" = {result}{binds}" if number == len(parts) - 1 else ""
            yield from wrap_lines(f"= {parts[number]}{last}", 8)
    for name, value, source in line.inputs:
        if (name, value, source) not in printed:
            yield from wrap_lines(f"{name} = {value}   ({source})", 8)


def _took(derivation: Derivation) -> str:
    if derivation.max_s <= derivation.unloaded_s * (1 + 1e-6) + 1e-14:
        how = "took that long" if derivation.count == 1 else "each took that long"
    else:
        low, high = seconds(derivation.min_s), seconds(derivation.max_s)
        how = f"took {high}" if low == high else f"took {low} to {high}"
    return how + (f": {', '.join(derivation.reasons)}" if derivation.reasons else "")


def _what_if(explanation: Explanation, verbose: bool) -> Iterator[str]:
    if explanation.what_if is None:
        large = len(explanation.run.timeline) > LARGEST
        yield f"  not simulated: the run has more than {LARGEST:,} ops (add --what-if)" if large else "  not simulated"
        return
    worth = [row for row in explanation.what_if if verbose or row.speedup >= WORTH or row.makespan_fs is None]
    for row in worth or explanation.what_if[:1]:
        sort = " (only together)" if row.combined else " (hypothetical)" if row.hypothetical else ""
        option = f"   --set {_quoted('='.join(row.settings[0]))}" if len(row.settings) == 1 else ""
        told = f"{row.change}{sort}{_then(row, explanation)}"
        if len(told) + len(option) + INSIDE > WIDTH:
            option, below = "", row.settings[:1] if option else ()
        else:
            below = ()
        first, *rest = wrap_lines(f"{told}{option}", INSIDE, deeper=INSIDE)
        yield f"  {_outcome(row, explanation)}  {first[INSIDE:]}"
        yield from rest
        if len(row.settings) > 1:
            below = row.settings if verbose else ()
            if not verbose:
                yield f"{'':{INSIDE}}{len(row.settings)} parameters: --set with -v"
        for path, value in below:
            yield f"{'':{INSIDE}}--set {_quoted(f'{path}={value}')}"
    if not explanation.what_if:
        yield "  nothing to try"
    elif left := len(explanation.what_if) - len(worth or explanation.what_if[:1]):
        yield f"  {left} more below {WORTH}x (-v)"
    yield from (line for text in left_out(explanation) for line in wrap_lines(text, 2))


def _outcome(row: WhatIf, explanation: Explanation) -> str:
    if row.makespan_fs is None:
        return f"{'never ends':>15}"
    if explanation.measure is None:
        return f"{format_quantity(row.makespan_fs / FEMTO, 's'):>8}  {row.speedup:>4.2f}x"
    value = dict(row.measured).get(explanation.measure.name, 0.0)
    shown = seconds(value) if explanation.measure.name in TIMES else f"{_rate(value)}/s"
    return f"{shown:>8}  {row.speedup:>4.2f}x"


def _then(row: WhatIf, explanation: Explanation) -> str:
    if row.makespan_fs is None:
        return ": the ops would wait for each other"
    if explanation.measure is not None:
        others = ((name, value) for name, value in row.measured if name != explanation.measure.name)
        return f"; {', '.join(f'{name} {seconds(value) if name in TIMES else _rate(value)}' for name, value in others)}"
    return bound_after(row, explanation.activities)


def _rate(value: float) -> str:
    """Return a rate with at least three digits.

    >>> _rate(0.0543), _rate(12345.6)
    ('0.0543', '12,346')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or "*" in text else text


def left_out(explanation: Explanation) -> Iterator[str]:
    """Yield the changes that were not tried, with the reasons."""
    if explanation.untried:
        yield f"{explanation.untried} parameters of smaller causes not tried"
    for reason in explanation.left:
        yield f"not tried: {reason}"
    if explanation.measure is not None:
        yield f"times are of the service: {explanation.measure.words}"


def _heading(title: str) -> list[str]:
    return ["", title]


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME // 2 - 2]}...{name[-(NAME // 2 - 2) :]}"
