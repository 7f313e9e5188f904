"""The answer of `hwsim score`: measured numbers beside predictions, and the file of scores for later predictions."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median, stdev
from typing import Any, ClassVar, Final

from hwsim.formats import format_change, format_quantity, percent, pluralized
from hwsim.machine.scores import FORMAT, ScoreRow, decode_scores, runs_by_regime
from hwsim.records import dataclass
from hwsim.results.errors import FEWEST
from hwsim.scoring.predictions import Prediction
from hwsim.spec import Mistakes, read
from hwsim.spec.yaml_writer import flow
from hwsim.version import __version__
from hwsim.views.interval.say import TITLE, sides
from hwsim.views.kit.answer_forms import FigureAnswer
from hwsim.views.kit.file_output import write
from hwsim.views.kit.lines import wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle
from hwsim.views.score import draw

NAME: Final = 34  # characters of the name of a run
SHOWN: Final = 30
MIXED: Final = "-"  # regime of a number that mixes several


@dataclass(frozen=True, slots=True)
class Pair:
    """A measured number and its prediction, in SI units.

    Args:
        run: name of the run, with its settings.
        quantity: name of the number.
        measured: measured number.
        prediction: its prediction.
        source: file of the measurement.
        gpu: GPU of the machine, as from `hwsim.machine.scores.gpu_name`.
    """

    run: str
    quantity: str
    measured: float
    prediction: Prediction
    source: str
    gpu: str

    @property
    def ratio(self) -> float:
        """Measured over simulated number."""
        return self.measured / self.prediction.value

    @property
    def is_inside(self) -> bool | None:
        """Whether the measured number is in the 90 % interval; None without an interval."""
        return self.prediction.low <= self.measured <= self.prediction.high if self.prediction.has_interval else None

    @property
    def row(self) -> ScoreRow | None:
        """The row of a file of scores; None for a number that mixes several regimes."""
        if not self.prediction.regime:
            return None
        path = Path(self.source)
        date = dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC).date().isoformat() if path.exists() else None
        ratio = float(f"{self.ratio**self.prediction.power:.6g}")
        return ScoreRow(self.prediction.regime, ratio, self.run, self.quantity, self.gpu, path.name, date)


@dataclass(frozen=True)
class Scored(FigureAnswer):
    """Measured numbers beside their predictions."""

    pairs: tuple[Pair, ...]
    TABLE: ClassVar = "rows"

    @cached_property
    def judged(self) -> list[bool]:
        """For each number with an interval, whether it is inside."""
        return [pair.is_inside for pair in self.pairs if pair.is_inside is not None]

    @property
    def rows(self) -> list[ScoreRow]:
        """The rows of the file of scores."""
        return [row for pair in self.pairs if (row := pair.row) is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: score/1`."""
        return {
            "hwsim": "score/1",
            "inside": sum(self.judged),  # integers
            "judged": len(self.judged),
            "rows": [
                {
                    "run": pair.run,
                    "quantity": pair.quantity,
                    "unit": pair.prediction.dimension.unit,
                    "measured": pair.measured,
                    "predicted": pair.prediction.value,
                    "low": pair.prediction.low if pair.prediction.has_interval else None,
                    "high": pair.prediction.high if pair.prediction.has_interval else None,
                    "ratio": pair.ratio,
                    "inside": pair.is_inside,
                    "regime": pair.prediction.regime,
                    "source": pair.source,
                }
                for pair in self.pairs
            ],
            "regimes": {
                regime: {"runs": len(logs), "median_ratio": math.exp(median(logs))}
                for regime, logs in runs_by_regime(self.rows).items()
            },
        }

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Draw each predicted interval as a multiple of the measured number."""
        ranges = [
            draw.ScoredRange(f"{pair.quantity}, {cut_middle(pair.run, NAME)}", *(
                number / pair.measured for number in (pair.prediction.low, pair.prediction.value, pair.prediction.high)
            ))
            for pair in self.pairs[:SHOWN]
        ]  # fmt: skip
        return draw.render(self._finding, ranges, suffix)

    @property
    def _finding(self) -> str:
        count = len(self.judged)
        verb = "is" if count == 1 else "are"
        return (
            f"{sum(self.judged)} of {pluralized(count, 'measured value')} {verb} inside the {TITLE} of its prediction"  # integers
        )

    def __str__(self) -> str:
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield self._finding
        yield ""
        shown = sorted(self.pairs, key=lambda pair: -abs(math.log(pair.ratio)))[:SHOWN]
        if len({pair.run for pair in shown}) == 1:
            yield from wrap_lines(shown[0].run, 2)
            yield ""
        yield from align_columns([*self._columns(shown)])
        if len(shown) < len(self.pairs):
            yield f"  {len(self.pairs) - len(shown)} more with a smaller deviation (--json)"
        yield ""
        yield from self._learned()

    def _columns(self, shown: Sequence[Pair]) -> Iterator[Column]:
        def texts(values: Iterable[tuple[Pair, float]]) -> list[str]:
            return [format_quantity(value, pair.prediction.dimension.unit) for pair, value in values]

        if len({pair.run for pair in shown}) > 1:
            yield Column("run", [cut_middle(pair.run, NAME) for pair in shown], right=False)
        yield Column("quantity", [pair.quantity for pair in shown], right=False)
        yield Column("measured", texts((pair, pair.measured) for pair in shown))
        yield Column("predicted", texts((pair, pair.prediction.value) for pair in shown))
        yield Column(TITLE, [_range(pair.prediction) for pair in shown])
        yield Column("measured / predicted", [f"{pair.ratio:.3g}" for pair in shown])
        yield Column("inside", [{True: "yes", False: "NO", None: "-"}[pair.is_inside] for pair in shown], right=False)
        yield Column("regime", [pair.prediction.regime or MIXED for pair in shown], right=False)

    def _learned(self) -> Iterator[str]:
        """Yield what the measurements tell about each regime, and what to do next."""
        found = runs_by_regime(self.rows)
        for regime, logs in found.items():
            scatter = f", standard deviation {percent(stdev(logs), '.2g')}" if len(logs) > 1 else ""
            few = "" if len(logs) >= FEWEST else f"; {FEWEST} runs or more correct and narrow later predictions"
            change = format_change(math.exp(median(logs)) - 1)
            yield from wrap_lines(
                f"{regime}: {pluralized(len(logs), 'run')}, measured / predicted time or rate {change} (median){scatter}{few}", 2
            )
        if any(not pair.prediction.regime for pair in self.pairs):
            yield from wrap_lines("values without a regime mix several kinds of work, or have no interval: they are not kept", 2)
        if found:
            yield "  next: keep them with -o scores.yaml, and write `scores: scores.yaml` in the machine file"


def _range(prediction: Prediction) -> str:
    if not prediction.has_interval:
        return "-"
    return sides(prediction.low / prediction.value, prediction.high / prediction.value)


def save(rows: Sequence[ScoreRow], path: Path) -> Path:
    """Write a file of scores; rows of an existing file remain, except earlier rows of the same run, quantity and source.

    Raises:
        SpecError: the existing file has mistakes, or is of another version of hwsim.
    """
    kept: Sequence[ScoreRow] = ()
    if path.is_file() and path.stat().st_size:
        mistakes = Mistakes()
        file = decode_scores(read(path), mistakes)
        mistakes.raise_if_any()
        kept = file.rows if file is not None else ()
    unique = {(row.regime, row.run, row.quantity, row.source): row for row in (*kept, *rows)}
    lines = [f"hwsim: {FORMAT}", f"version: {__version__}", "rows:"]
    lines += [
        f"  - {flow({name: value for name in ScoreRow.__slots__ if (value := getattr(row, name))})}" for row in unique.values()
    ]
    return write(path, ["\n".join([*lines, ""]).encode()])
