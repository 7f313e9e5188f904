"""Score a calibration of this machine on programs that it never saw, and write docs/validation/calibration.md.

    python -m published.composites                            # measures for about three minutes, on a quiet machine
    python -m published.composites --keep m.json.gz           # keeps what was measured; a file that is there is gone on from
    python -m published.composites m.json.gz                  # of a file that has the programs in it, nothing is measured
    python -m published.composites --check                    # exit 1 where a bound is not met

Calls and programs are timed in the same rounds, so that both meet the same machine.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from hwsim.invariants import printed
from hwsim_calibrate.composites import PROGRAMS
from hwsim_calibrate.fit import fit
from hwsim_calibrate.session import Plan, measure
from hwsim_calibrate.store import Measurements, load
from hwsim_calibrate.validate import SUITE, Report, case_of, validate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validation" / "calibration.md"
SUITES = ("kernels", "memory", "allocation")
BUDGET = 240.0


def scored(found: Measurements) -> Report:
    """The calls of a file fitted, its programs predicted."""
    timed = {row.op: row.quiet for row in found.of(SUITE)}
    calls = replace(found, rows=tuple(row for row in found.rows if row.suite != SUITE))
    chosen = [program for program in PROGRAMS if program.name in timed] if timed else PROGRAMS
    report = validate(fit(calls, name="this machine"), programs=chosen, timed=timed)
    here = found.environment
    load_of, model = here.get("load", {}).get("average", ["unknown"])[0], here.get("cpu", {}).get("model", "")
    busy = f"{model}, load average {load_of}, {here.get('date', '')[:10]}"
    disturbed = sum(bool(row.flags) for row in found.of(SUITE))
    return replace(report, notes=(busy, f"{disturbed} of {len(timed)} programs were disturbed while they were timed"))


def main() -> int:
    """Measure where nothing was, fit, score, write."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("measurements", nargs="?", type=Path, help="a file of measurements of this very machine")
    options.add_argument("--keep", type=Path, help="where to keep what is measured")
    options.add_argument("--budget", type=float, default=BUDGET, help="seconds of measuring, at most")
    options.add_argument("--plot", type=Path, help="a figure: .png, .svg or .pdf")
    options.add_argument("--check", action="store_true", help="exit 1 where a bound is not met")
    said = options.parse_args()
    if said.measurements:
        found = load(said.measurements)
    else:
        found = measure(Plan(suites=SUITES, more=[case_of(program) for program in PROGRAMS], budget=said.budget), said.keep)
    report = scored(found)
    PAGE.write_text(printed(report.markdown()), encoding="utf-8")
    print(report, end="")
    print(f"wrote {PAGE.name}")
    if said.plot:
        report.plot(said.plot)
    return 1 if said.check and not all(met for *_, met in report.bounds()) else 0


if __name__ == "__main__":
    sys.exit(main())
