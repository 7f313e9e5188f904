"""Measurements, findings and errors as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from hwsim.formats import format_quantity, percent
from hwsim.views.kit.table import Column, align_columns
from hwsim_calibrate.doctor import Finding
from hwsim_calibrate.flags import FLAGS
from hwsim_calibrate.store import Measurements, Row

if TYPE_CHECKING:
    from hwsim_calibrate.validate import Report

WORST: Final = 5  # programs


def measured(measurements: Measurements, *, every: bool = False) -> str:
    """A line per suite, what disturbed it and what is missing; `every`: a line per case instead."""
    rows = measurements.rows
    lines = [_machine(measurements), ""]
    if every:
        lines += align_columns([
            Column("suite", [row.suite for row in rows], right=False),
            Column("case", [row.case for row in rows], right=False),
            Column("time", [format_quantity(row.quiet, "s") for row in rows]),
            Column("flags", [", ".join(row.flags) for row in rows], right=False),
        ], indent=0)  # fmt: skip
    else:
        suites = [(name, [*measurements.of(name)]) for name in dict.fromkeys(row.suite for row in rows)]
        lines += align_columns([
            Column("suite", [name for name, _ in suites], right=False),
            Column("cases", [str(len(cases)) for _, cases in suites]),
            Column("rounds", [f"{median(len(row.seconds) for row in cases):g}" for _, cases in suites]),
            Column("spread", [percent(median(row.spread for row in cases)) for _, cases in suites]),
            Column("sound", [percent(sum(not row.flags for row in cases) / len(cases), ".0f") for _, cases in suites]),
            Column("most often", [_frequent_flags(cases) for _, cases in suites], right=False),
        ], indent=0)  # fmt: skip
    flags = [flag for flag in FLAGS if any(flag in row.flags for row in rows)]
    lines += ["", *(f"{flag:<10}  {FLAGS[flag]}" for flag in flags)] if flags else []
    if measurements.skipped:
        lines += ["", "not measured", *(f"  {name:<18}  {reason}" for name, reason in measurements.skipped.items())]
    return "\n".join(lines) + "\n"


def _machine(measurements: Measurements) -> str:
    environment = measurements.environment
    cpu, software, gpu = (environment.get(key, {}) for key in ("cpu", "software", "gpu"))
    parts = [
        f"{cpu.get('model', 'unknown CPU')}, {cpu.get('usable', '?')} CPUs",
        *([str(gpu["name"])] if gpu.get("name") else []),
        f"numpy {software.get('numpy', '?')}, {software.get('blas', '?')} ({software.get('blas_core', '?')})",
        str(environment.get("date", "")),
    ]
    return "; ".join(parts)


def _frequent_flags(rows: Sequence[Row]) -> str:
    counts = Counter(flag for row in rows for flag in row.flags).most_common(3)
    return ", ".join(f"{flag} {count}" for flag, count in counts)


def examined(findings: tuple[Finding, ...]) -> str:
    """Each finding: what, why it matters, what would help."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.what}")
        lines += [f"{'':<9}{text}" for text in (finding.why, finding.help and f"help: {finding.help}") if text]
    return "\n".join(lines) + "\n"


def validated(report: Report) -> str:
    """Each error with its bound, then the programs with the largest errors."""
    bounds = [(name, percent(value), percent(bound), "" if met else "missed") for name, value, bound, met in report.bounds()]
    if report.itself is not None:
        bounds.append(("the measured calls themselves", percent(report.itself.median), "", ""))
    bounds += [(f"GPU, {name}", percent(each.median), "", "") for name, each in report.gpu.items()]
    names, values, limits, verdicts = zip(*bounds, strict=True) if bounds else ((), (), (), ())
    lines = [*align_columns([
        Column("error of", names, right=False), Column("error", values), Column("bound", limits),
        Column("", verdicts, right=False),
    ], indent=0)]  # fmt: skip
    worst = sorted(report.programs, key=lambda each: -abs(each.time.error))[:WORST]
    if worst:
        lines += ["", *align_columns([
            Column("furthest off", [each.program.name for each in worst], right=False),
            Column("measured", [format_quantity(each.time.measured, "s") for each in worst]),
            Column("predicted", [format_quantity(each.time.predicted, "s") for each in worst]),
            Column("error", [percent(each.time.error, "+.1f") for each in worst]),
            Column("by functions alike", [percent(each.related, ".0f") for each in worst]),
            Column("uncalibrated", [percent(each.uncalibrated, ".0f") for each in worst]),
        ], indent=0)]  # fmt: skip
    return "\n".join([*lines, *([""] if report.notes else []), *report.notes]) + "\n"
