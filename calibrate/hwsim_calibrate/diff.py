"""Changes between two measurements, case by case."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from hwsim.spec import SpecError
from hwsim_calibrate.environment import differences
from hwsim_calibrate.store import load

UNSTABLE: Final = 0.05  # a number that moves by more is called unstable


@dataclass(frozen=True, slots=True)
class Change:
    """One number in both files; group: the name under which it is counted."""

    group: str
    name: str
    before: float
    after: float
    flags: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after / self.before

    @property
    def size(self) -> float:
        """Relative change, up or down: 0.05 for 5 %."""
        return math.exp(abs(math.log(self.ratio))) - 1.0


@dataclass(frozen=True, slots=True)
class Difference:
    """All numbers that two files have in common, the names in one of them alone, and differences of the machines."""

    changes: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    machines: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        """Median size of the changes."""
        return median(each.size for each in self.changes) if self.changes else 0.0

    @property
    def unstable(self) -> tuple[Change, ...]:
        """Changes of more than 5 %, the largest first."""
        return tuple(sorted((each for each in self.changes if each.size > UNSTABLE), key=lambda each: -each.size))

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        return {
            "hwsim": "difference/1",
            "median_change": self.median,
            "machines": list(self.machines),
            "changes": [
                {"group": each.group, "name": each.name, "before": each.before, "after": each.after, "flags": list(each.flags)}
                for each in self.changes
            ],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


def diff(before: str | Path, after: str | Path) -> Difference:
    """Compare two files of measurements, case by case.

    Raises:
        SpecError: a file is none of measurements, or they have no case in common.
        OSError: one cannot be read.
    """
    files = load(before), load(after)
    old, new = ({row.key: row for row in file.rows} for file in files)
    changes = tuple(
        Change(
            f"{row.suite} {row.op}", f"{row.suite}: {row.case}", row.quiet, new[key].quiet, tuple({*row.flags, *new[key].flags})
        )
        for key, row in old.items()
        if key in new
    )
    if not changes:
        raise SpecError.of(None, f"'{before}' and '{after}' have nothing in common: no case is in both")
    only = [tuple(": ".join(key) for key in mine if key not in others) for mine, others in ((old, new), (new, old))]
    return Difference(changes, only[0], only[1], differences(files[0].environment, files[1].environment))
