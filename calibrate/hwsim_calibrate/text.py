"""Measurements, findings and error reports as text for a terminal."""

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

MAX_PROGRAMS: Final = 5  # programs with the largest errors


def format_measurements(measurements: Measurements, *, every: bool = False) -> str:
    """Return one line per suite with its disturbances, or with `every` one line per case; then the missing suites."""
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
            Column("unflagged", [percent(sum(not row.flags for row in cases) / len(cases), ".0f") for _, cases in suites]),
            Column("most frequent flags", [_frequent_flags(cases) for _, cases in suites], right=False),
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


def format_findings(findings: tuple[Finding, ...]) -> str:
    """Return each finding with its effect and its remedy."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.what}")
        lines += [f"{'':<9}{text}" for text in (finding.why, finding.help and f"help: {finding.help}") if text]
    return "\n".join(lines) + "\n"


def format_report(report: Report) -> str:
    """Return each error with its bound, then the programs with the largest errors."""
    bounds = [(name, percent(value), percent(bound), "" if met else "missed") for name, value, bound, met in report.bounds()]
    if report.itself is not None:
        bounds.append(("measured calls, without corrections", percent(report.itself.median), "", ""))
    bounds += [(f"GPU, {name}", percent(errors.median), "", "") for name, errors in report.gpu.items()]
    names, values, limits, verdicts = zip(*bounds, strict=True) if bounds else ((), (), (), ())
    lines = [*align_columns([
        Column("error of", names, right=False), Column("error", values), Column("bound", limits),
        Column("", verdicts, right=False),
    ], indent=0)]  # fmt: skip
    worst = sorted(report.programs, key=lambda program: -abs(program.time.error))[:MAX_PROGRAMS]
    if worst:
        lines += ["", *align_columns([
            Column("largest errors", [program.program.name for program in worst], right=False),
            Column("measured", [format_quantity(program.time.measured, "s") for program in worst]),
            Column("predicted", [format_quantity(program.time.predicted, "s") for program in worst]),
            Column("error", [percent(program.time.error, "+.1f") for program in worst]),
            Column("similar functions", [percent(program.related, ".0f") for program in worst]),
            Column("uncalibrated", [percent(program.uncalibrated, ".0f") for program in worst]),
        ], indent=0)]  # fmt: skip
    return "\n".join([*lines, *([""] if report.notes else []), *report.notes]) + "\n"
