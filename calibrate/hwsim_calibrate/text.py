"""What was measured, what changed and what was found, for a terminal."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING, Final

from hwsim.units import format_quantity, percent
from hwsim_calibrate.diff import Change, Difference
from hwsim_calibrate.doctor import Finding
from hwsim_calibrate.flags import FLAGS
from hwsim_calibrate.store import Measurements, Row

if TYPE_CHECKING:
    from hwsim_calibrate.validate import Report

SHOWN: Final = 10  # of a list that may be long
WORST: Final = 5  # programs


def measured(found: Measurements, *, every: bool = False) -> str:
    """A line per suite, what disturbed it and what is missing; `every`: a line per case instead."""
    lines = [_machine(found), ""]
    if every:
        wide = max((len(row.case) for row in found.rows), default=0)
        lines += [f"{row.suite:<10}  {row.case:<{wide}}  {_time(row):>9}  {', '.join(row.flags)}".rstrip() for row in found.rows]
    else:
        lines.append(f"{'suite':<12}{'cases':>6}{'rounds':>8}{'spread':>8}{'sound':>7}   most often")
        lines += [_suite(suite, [*found.of(suite)]) for suite in dict.fromkeys(row.suite for row in found.rows)]
    seen = dict.fromkeys(flag for flag in FLAGS for row in found.rows if flag in row.flags)
    if seen:
        lines += ["", *(f"{flag:<10}  {FLAGS[flag]}" for flag in seen)]
    if found.skipped:
        lines += ["", "not measured", *(f"  {name:<18}  {reason}" for name, reason in found.skipped.items())]
    return "\n".join(lines) + "\n"


def changed(found: Difference, *, every: bool = False) -> str:
    """By group, then the numbers that moved most; `every`: all of them."""
    lines = [f"these differ: {each}" for each in found.machines]
    moved = f"{len(found.unstable)} moved by more than 5 %"
    lines += [f"{len(found.changes)} numbers in both; median change {percent(found.median)}, {moved}", ""]
    if every:
        lines += [_change(each) for each in found.changes]
    else:
        groups: dict[str, list[Change]] = {}
        for each in found.changes:
            groups.setdefault(each.group, []).append(each)
        lines.append(f"{'':<36}{'numbers':>8}{'median':>9}{'most':>9}")
        for name, changes in groups.items():
            sizes = [each.size for each in changes]
            lines.append(f"{name[:35]:<36}{len(changes):>8}{percent(median(sizes)):>9}{percent(max(sizes)):>9}")
        lines += ["", "moved most", *(_change(each) for each in found.unstable[:SHOWN])] if found.unstable else []
    for word, names in (("before", found.only_before), ("after", found.only_after)):
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        lines += ["", f"only {word}: {'; '.join(names[:SHOWN])}{more}"] if names else []
    return "\n".join(lines) + "\n"


def examined(found: tuple[Finding, ...]) -> str:
    """A finding each: what, why it matters, what would help."""
    lines = []
    for each in found:
        lines.append(f"{each.level:<8} {each.what}")
        lines += [f"{'':<9}{text}" for text in (each.why, each.help and f"help: {each.help}") if text]
    return "\n".join(lines) + "\n"


def validated(found: Report) -> str:
    """Each error beside what is asked for, then the programs that are told worst."""
    lines = [f"{'':<44}{'error':>8}{'asked for':>11}"]
    lines += [
        f"{what:<44}{percent(value):>8}{percent(bound):>11}{'' if met else '   missed'}"
        for what, value, bound, met in found.bounds()
    ]
    if found.itself is not None:
        lines.append(f"{'the measured calls themselves':<44}{percent(found.itself.median):>8}")
    far = sorted(found.programs, key=lambda each: -abs(each.told.error))[:WORST]
    if far:
        lines += ["", f"{'furthest off':<44}{'measured':>10}{'told':>10}{'error':>9}{'uncalibrated':>14}"]
    for each in far:
        told, free = each.told, f"{100 * each.uncalibrated:.0f} %"
        times = f"{format_quantity(told.measured, 's'):>10}{format_quantity(told.predicted, 's'):>10}"
        lines.append(f"{each.program.name[:31]:<44}{times}{100 * told.error:>+7.1f} %{free:>14}")
    disturbed = len(found.notes)
    if disturbed:
        lines += ["", f"{disturbed} of {len(found.programs)} programs were disturbed while they were timed"]
    return "\n".join(lines) + "\n"


def _machine(found: Measurements) -> str:
    cpu, software = found.environment.get("cpu", {}), found.environment.get("software", {})
    gpu = found.environment.get("gpu", {}).get("name")
    parts = [
        f"{cpu.get('model', 'unknown CPU')}, {cpu.get('usable', '?')} CPUs",
        *([gpu] if gpu else []),
        f"numpy {software.get('numpy', '?')}, {software.get('blas', '?')} ({software.get('blas_core', '?')})",
        str(found.environment.get("date", "")),
    ]
    return "; ".join(parts)


def _suite(name: str, rows: list[Row]) -> str:
    rounds = median(len(row.seconds) for row in rows)
    spread = median(row.spread for row in rows)
    sound = sum(not row.flags for row in rows) / len(rows)
    often = Counter(flag for row in rows for flag in row.flags).most_common(3)
    said = ", ".join(f"{flag} {count}" for flag, count in often)
    return f"{name:<12}{len(rows):>6}{rounds:>8g}{percent(spread):>8}{100 * sound:>5.0f} %   {said}".rstrip()


def _time(row: Row) -> str:
    return format_quantity(row.quiet, "s")


def _change(each: Change) -> str:
    flags = f"  ({', '.join(each.flags)})" if each.flags else ""
    return f"  {each.name}  {each.before:.4g} -> {each.after:.4g}, {100 * (each.ratio - 1):+.1f} %{flags}"
