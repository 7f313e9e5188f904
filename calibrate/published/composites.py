"""Evaluate the calibration of this machine on programs not used for fitting, and write docs/validation/calibration.md.

    python -m published.composites                            # measures for about three minutes, on a quiet machine
    python -m published.composites --keep m.json.gz           # stores the measurements; an existing file is continued
    python -m published.composites m.json.gz                  # uses a file that contains the programs, without measuring
    python -m published.composites --check                    # exit code 1 if a bound is missed

Calls and programs are timed in the same rounds, so both run under the same machine load.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from hwsim.formats import format_quantity, percent
from hwsim.results.invariants import checked_text
from hwsim_calibrate import text
from hwsim_calibrate.composites import PROGRAMS
from hwsim_calibrate.fit import fit
from hwsim_calibrate.session import Plan, measure
from hwsim_calibrate.store import Measurements, load
from hwsim_calibrate.validate import SUITE, Report, case_of, validate
from published.parts import declared
from published.programs import first_sight

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "calibration.md"
SUITES = ("kernels", "memory", "allocation")
BUDGET = 240.0
WORST = 8  # number of listed sizes
# Later results of the second set: set, load average, median, 90th percentile, coverage.
LATER: tuple[str, ...] = (
    "second set after repairs, no longer blind | 2 to 5 | 10.0 % | 39 % | 24 of 30",
    "every fourth script of the second set, blind, with its own calls measured (`--for`) | 1 to 2 | 12.6 % | 38 % | 5 of 8",
)
INTRO = declared("composites")["intro"]
SCORED = declared("composites")["scored"]
SHOWN = declared("composites")["shown"]


def scored(found: Measurements) -> Report:
    """Fit the calls of a file, predict its programs, and return the report."""
    timed = {row.op: row.quiet for row in found.of(SUITE)}
    calls = replace(found, rows=tuple(row for row in found.rows if row.suite != SUITE))
    chosen = [program for program in PROGRAMS if program.name in timed] if timed else PROGRAMS
    report = validate(fit(calls, name="this machine"), programs=chosen, timed=timed)
    here = found.environment
    load_of, model = here.get("load", {}).get("average", ["unknown"])[0], here.get("cpu", {}).get("model", "")
    busy = f"{model}, load average {load_of}, {here.get('date', '')[:10]}"
    disturbed = sum(bool(row.flags) for row in found.of(SUITE))
    return replace(report, notes=(busy, f"{disturbed} of {len(timed)} programs were disturbed during timing"))


def page(report: Report) -> str:
    """Return the page docs/validation/calibration.md."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield "# Calibration: predictions of NumPy programs\n"
    unseen = [abs(script.error) for script in first_sight()]
    median, tail = percent(statistics.median(unseen), ".1f"), percent(float(np.quantile(unseen, 0.9)), ".0f")
    yield f"**On {len(unseen)} unseen scripts in a blind test, the median error was {median} and the 90th percentile {tail}.**"
    if report.blind is not None:
        median, tail = percent(report.blind.median, ".1f"), percent(report.blind.p90, ".1f")
        yield f"After repairs, they are {median} and {tail} for programs by another author that were not used for fitting."
    yield ""
    yield INTRO
    yield "| figure | error | bound | |\n|---|---|---|---|"
    for what, value, bound, met in report.bounds():
        yield f"| {what} | {percent(value, '.1f')} | at most {percent(bound, 'g')} | {'met' if met else '**not met**'} |"
    yield ""
    for title, errors in (
        ("held-out sizes", report.sizes), ("sizes used for fitting", report.itself), ("programs by another author", report.blind),
        ("programs of our own", report.development),
    ):  # fmt: skip
        if errors is not None and errors.cases:
            yield f"- {title}: {errors}"
    yield ""
    yield from _at_first_sight()
    yield "| program | calls | measured | predicted | error | uncalibrated time | author |\n|---|---|---|---|---|---|---|"
    for program in sorted(report.programs, key=lambda one: abs(one.time.error)):
        seconds = " | ".join(format_quantity(time, "s", 3) for time in (program.time.measured, program.time.predicted))
        yield (
            f"| {program.program.name} | {program.calls} | {seconds} | "
            f"{percent(program.time.error, '+.1f')} | {percent(program.uncalibrated, '.0f')} | "
            f"{'other' if program.program.blind else ''} |"
        )
    if report.sizes is not None and report.sizes.cases:
        yield "\nHeld-out sizes with the largest errors:\n"
        for worst in report.sizes.worst(WORST):
            yield f"- {worst.case}: {percent(worst.error, '+.0f')}"
    if report.notes:
        yield "\n" + "; ".join(report.notes)


def _at_first_sight() -> Iterator[str]:
    """Return the section on blind tests: programs that were scored before anyone reviewed them."""
    yield SCORED
    found = first_sight()
    errors = sorted(abs(script.error) for script in found)
    held = sum(script.held for script in found)
    yield "| set | load average (2 CPUs) | median error | 90th percentile | inside the 90 % interval |\n|---|---|---|---|---|"
    yield "| first set | 4 to 11 | 12.9 % | 81 % | |"
    yield (
        f"| second set | 0.3 to 1 | {percent(statistics.median(errors), '.1f')} | "
        f"{percent(float(np.quantile(errors, 0.9)), '.0f')} | {held} of {len(found)} |"
    )
    for row in LATER:
        yield f"| {row} |"
    yield SHOWN
    yield "| script | CPU time | CPU time of its calls | predicted | error |\n|---|---|---|---|---|"
    for run in sorted(found, key=lambda one: abs(one.error)):
        times = " | ".join(format_quantity(time, "s", 3) for time in (run.script_s, run.calls_s, run.predicted_s))
        yield f"| {run.program} | {times} | {percent(run.error, '+.1f')} |"
    yield "\n## Programs\n"


def main() -> int:
    """Measure if no file is given, then fit, score and write the page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("measurements", nargs="?", type=Path, help="a file of measurements of this very machine")
    options.add_argument("--keep", type=Path, help="where to keep what is measured")
    options.add_argument("--budget", type=float, default=BUDGET, help="seconds of measuring, at most")
    options.add_argument("--check", action="store_true", help="exit 1 where a bound is not met")
    said = options.parse_args()
    if said.measurements:
        found = load(said.measurements)
    else:
        found = measure(Plan(suites=SUITES, more=[case_of(program) for program in PROGRAMS], budget=said.budget), said.keep)
    report = scored(found)
    PAGE.write_text(checked_text(page(report)), encoding="utf-8")
    print(text.format_report(report), end="")
    print(f"wrote {PAGE.name}")
    return 1 if said.check and not all(met for *_, met in report.bounds()) else 0


if __name__ == "__main__":
    sys.exit(main())
