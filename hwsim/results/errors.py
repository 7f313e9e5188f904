"""Errors of predictions, as measured: the table of `errors.yaml`, by kind of time and by what was known.

Errors are of ln(predicted / measured), so that 0.1 is 10 % either way. The table is written by `python -m published --errors`
from rows that the constants had not seen; nothing in it is written by hand.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hwsim.origins import CASES, Case
from hwsim.records import dataclass

WIDER: Final = 2.0  # where no case was measured that is as unsure: over the widest one


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one kind of time, for one case.

    Args:
        rows, units: measured rows behind them, and how many devices or sources were left out in turn.
        shared, scatter: one standard deviation of what a unit's rows miss by together, and of the rest.
        half: half widths by per cent of the rows that they hold: {50: 0.05, 90: 0.2}.
        typical: median standard deviation that the propagated spreads of the rows had; 0 if they tell the rows apart badly.
        case: the case that was measured; a less sure one is asked for where it differs.
    """

    rows: int
    units: int
    shared: float
    scatter: float
    half: Mapping[int, float]
    typical: float = 0.0
    case: Case = "known"

    @property
    def sigma(self) -> float:
        """Standard deviation of one prediction."""
        return math.hypot(self.shared, self.scatter)

    def quantile(self, level: int) -> float:
        """Half width over the standard deviation: 1.64 for 90 % of a normal distribution, more where tails are long."""
        return self.half[level] / self.sigma if self.sigma > 0 else 0.0

    def widened(self, factor: float) -> Errors:
        """The same, wider by what all kernels of a device without measurements have in common."""
        half = {level: width * factor for level, width in self.half.items()}
        shared = math.sqrt((self.sigma * factor) ** 2 - self.scatter**2)
        return Errors(self.rows, self.units, shared, self.scatter, half, self.typical, self.case)


@dataclass(frozen=True, slots=True)
class Table:
    """Errors of models by regime and case, and of single numbers by the kind of their source.

    own: standard deviation of what a whole run misses by besides its kernels, by case.
    numbers: standard deviation of ln(number) by kind of source, then by what it is a number of ("any" for the others).
    correlation: correlation of errors of equal work on two devices, by regime and case.
    """

    regimes: Mapping[str, Mapping[Case, Errors]]
    own: Mapping[Case, float]
    numbers: Mapping[str, Mapping[str, float]]
    correlation: Mapping[str, Mapping[Case, float]]

    def errors(self, regime: str, case: Case) -> Errors | None:
        """Errors of a regime in this case, else in the next less sure one; wider than the least sure if none was measured.

        A regime that is not in the table has the errors of its topic, "nccl/*". None: nothing was measured of its topic.
        """
        cases = self.regimes.get(regime) or self.regimes.get(regime.partition("/")[0] + "/*")
        if not cases:
            return None
        widest = max(cases.values(), key=lambda errors: errors.half[90])
        if case == "outside":
            return widest
        for less_sure in CASES[CASES.index(case) :]:
            if less_sure in cases:
                return cases[less_sure]
        return widest.widened(WIDER)

    def spread(self, source: str, kind: str) -> float:
        """Standard deviation of ln(number) of a number from this kind of source."""
        spreads = self.numbers[source]
        return spreads.get(kind, spreads["any"])


@functools.cache
def table() -> Table:
    """The table that comes with hwsim."""
    return read((Path(__file__).parents[1] / "errors.yaml").read_text(encoding="utf-8"))


def read(text: str) -> Table:
    """The table of a file: comments, then JSON, which is read thirty times as fast as YAML."""
    document = json.loads(re.sub(r"(?m)^#.*$", "", text))
    regimes = document["regimes"]
    return Table(
        {regime: {case: _errors(regimes, regime, case) for case in cases} for regime, cases in regimes.items()},
        document["steps"]["own"],
        {kind: {name: number for name, number in row.items() if name != "how"} for kind, row in document["numbers"].items()},
        {regime: {case: row["correlation"] for case, row in cases.items()} for regime, cases in document["ratio"].items()},
    )


def _errors(regimes: Mapping[str, Any], regime: str, case: Case) -> Errors:
    """Errors of a row; one that was carried over from another counts the rows of that one."""
    row = counted = regimes[regime][case]
    half, wanted = {int(level): width for level, width in row["half"].items()}, case
    for _ in CASES:  # a case of a case of a regime, at most
        if (less_sure := counted.get("as")) is None:
            break
        regime, case = (less_sure, case) if less_sure in regimes else (regime, less_sure)
        counted = regimes[regime][case]
    return Errors(counted["rows"], counted["units"], row["shared"], row["scatter"], half, row.get("typical", 0.0), wanted)
