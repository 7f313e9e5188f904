"""Score a calibration of this machine on programs that it never saw, and write docs/validation/calibration.md.

    python -m calibrate.composites [measurements.json.gz] [--seconds 60] [--check]

Without a file the machine is measured first (kernels, memory, allocation: about 90 s).  --check: exit 1 where a bound is not met.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hwsim.calibration.composites import PROGRAMS
from hwsim.calibration.fit import fit
from hwsim.calibration.session import Plan, measure
from hwsim.calibration.store import load
from hwsim.calibration.validate import validate

PAGE = Path(__file__).resolve().parent.parent / "docs" / "validation" / "calibration.md"


def main() -> int:
    """Measure where nothing was, fit, score, write."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("measurements", nargs="?", type=Path, help="a file of `hwsim calibrate measure`, of this very machine")
    options.add_argument("--seconds", type=float, default=60.0, help="for timing the programs")
    options.add_argument("--check", action="store_true", help="exit 1 where a bound is not met")
    said = options.parse_args()
    found = (
        load(said.measurements) if said.measurements else measure(Plan(suites=("kernels", "memory", "allocation"), budget=120.0))
    )
    report = validate(fit(found, name="this machine"), programs=PROGRAMS, budget=said.seconds)
    PAGE.write_text(report.markdown(), encoding="utf-8")
    print(report, end="")
    print(f"wrote {PAGE.name}")
    return 1 if said.check and not all(met for *_, met in report.bounds()) else 0


if __name__ == "__main__":
    sys.exit(main())
