"""The answer of `hwsim score`: measured numbers beside predictions, and the file of scores for later predictions."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
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
from hwsim.views.bars import draw
from hwsim.views.bars.draw import BarFigure, FigureBar
from hwsim.views.interval.say import TITLE
from hwsim.views.kit.answer_forms import FigureAnswer
from hwsim.views.kit.document import select_attributes
from hwsim.views.kit.file_output import write
from hwsim.views.kit.lines import wrap_lines
from hwsim.views.kit.table import Column, align_columns, cut_middle

NAME: Final = 36  # characters of the name of a run
SHOWN: Final = 30  # rows of the text and of the figure


@dataclass(frozen=True, slots=True)
class Pair:
    """A measured number and its prediction, in SI units.

    Args:
        machine: name of the machine.
        workload: name of the workload.
        settings: settings of the run, such as `batch=64`.
        gpu: GPU of the machine, as from `hwsim.machine.scores.gpu_name`; "" for a saved run.
        quantity: name of the number.
        measured: measured number.
        prediction: its prediction.
        source: file of the measurement.
    """

    machine: str
    workload: str
    settings: str
    gpu: str
    quantity: str
    measured: float
    prediction: Prediction
    source: str

    @property
    def run(self) -> str:
        """Workload and settings."""
        return " ".join(filter(None, (self.workload, self.settings)))

    @property
    def ratio(self) -> float:
        """Measured over simulated number."""
        return self.measured / self.prediction.predicted

    @property
    def inside(self) -> bool | None:
        """Whether the measured number is in the 90 % interval; None without an interval."""
        return self.prediction.low <= self.measured <= self.prediction.high if self.prediction.has_interval else None

    @property
    def row(self) -> ScoreRow:
        """The row of a file of scores."""
        path, regime, ratio = Path(self.source), self.prediction.regime, self.ratio**self.prediction.power
        date = dt.datetime.fromtimestamp(path.stat().st_mtime, dt.UTC).date().isoformat() if path.exists() else None
        run = f"{self.machine}, {self.run}"
        return ScoreRow(regime, float(f"{ratio:.6g}"), run, self.quantity, self.gpu, path.name, date)


@dataclass(frozen=True, slots=True)
class Scored(FigureAnswer):
    """Measured numbers with their predictions, largest deviation first."""

    pairs: tuple[Pair, ...]
    TABLE: ClassVar = "rows"

    @property
    def judged(self) -> list[bool]:
        """For each number with an interval, whether it is inside."""
        return [pair.inside for pair in self.pairs if pair.inside is not None]

    @property
    def rows(self) -> list[ScoreRow]:
        """The rows of the file of scores: numbers with an interval of one regime."""
        return [pair.row for pair in self.pairs if pair.prediction.regime]

    def to_json(self) -> dict[str, Any]:
        """Return the document `hwsim: score/1`; rows without an interval have equal `low` and `high`."""
        predicted = ("unit", "predicted", "low", "high", "regime")
        measured = ("machine", "run", "quantity", "measured", "ratio", "inside", "source")
        return {
            "hwsim": "score/1",
            "inside": sum(self.judged),  # integers
            "judged": len(self.judged),
            "rows": [select_attributes(pair, *measured) | select_attributes(pair.prediction, *predicted) for pair in self.pairs],
        }

    def figure(self, suffix: str) -> Iterable[bytes]:
        """Draw each predicted interval as a multiple of the measured number."""
        found = [(pair, cut_middle(pair.settings or pair.workload, NAME), pair.prediction) for pair in self.pairs[:SHOWN]]
        bars = [
            FigureBar(f"{pair.quantity}, {name}", prediction.low / pair.measured, prediction.high / pair.measured, whole=True)
            for pair, name, prediction in found
        ]
        return draw.render(BarFigure(self._finding, "predicted / measured", "1", tuple(bars), centre=1.0, legend=False), suffix)

    @property
    def _finding(self) -> str:
        count, met = len(self.judged), self.judged.count(True)
        verb, whose = ("is", "its") if count == 1 else ("are", "their")
        return f"{met} of {pluralized(count, 'measured value')} {verb} inside the {TITLE} of {whose} prediction"

    def __str__(self) -> str:
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        shown = self.pairs[:SHOWN]
        one = f", {shown[0].workload}" if len({pair.workload for pair in shown}) == 1 else ""
        runs = [cut_middle(pair.settings if one else pair.run, NAME) for pair in shown]
        yield from (self._finding, "", *wrap_lines(f"{shown[0].machine}{one}; ratio: measured / predicted", 2), "")
        predictions = [pair.prediction for pair in shown]
        yield from align_columns([
            *([Column("run", runs, right=False)] if any(runs) else []),
            Column("quantity", [pair.quantity for pair in shown], right=False),
            Column("measured", [format_quantity(pair.measured, pair.prediction.unit) for pair in shown]),
            Column("predicted", [format_quantity(found.predicted, found.unit) for found in predictions]),
            Column(TITLE, [found.relative_range for found in predictions]),
            Column("ratio", [f"{pair.ratio:.3g}" for pair in shown]),
            Column("inside", [{True: "yes", False: "NO", None: "-"}[pair.inside] for pair in shown], right=False),
            Column("regime", [found.regime or "-" for found in predictions], right=False),
        ])  # fmt: skip
        if len(shown) < len(self.pairs):
            yield f"  {len(self.pairs) - len(shown)} more with a smaller deviation (--json)"
        yield ""
        yield from self._learned()

    def _learned(self) -> Iterator[str]:
        """Yield the correction and interval of each regime after the measurements, and the next step."""
        found = runs_by_regime(self.rows)
        for regime, logs in found.items():
            what = "rate" if regime.startswith("throughput/") else "time"
            scatter = f", standard deviation {percent(stdev(logs), '.2g')}" if len(logs) > 1 else ""
            few = "" if len(logs) >= FEWEST else f"; from {FEWEST} runs on, they correct later predictions"
            change = format_change(math.exp(median(logs)) - 1)
            text = (
                f"{regime}: {pluralized(len(logs), 'run')}, measured {what} {change} from the prediction (median){scatter}{few}"
            )
            yield from wrap_lines(text, 2)
        if len(self.rows) < len(self.pairs):
            yield from wrap_lines("values without a regime mix several kinds of work, or have no interval: they are not kept", 2)
        if found:
            yield "  next: keep them with -o scores.yaml, and write `scores: scores.yaml` in the machine file"


def save(rows: Sequence[ScoreRow], path: Path) -> Path:
    """Write a file of scores; rows of an existing file remain, except earlier rows of the same run, quantity and source.

    Raises:
        SpecError: the existing file is not a file of scores of this version of hwsim.
    """
    mistakes, kept = Mistakes(), tuple[ScoreRow, ...]()
    if path.is_file() and path.stat().st_size:
        file = decode_scores(read(path), mistakes)
        mistakes.raise_if_any()
        kept = file.rows if file is not None else ()
    unique = {(row.regime, row.run, row.quantity, row.source): row for row in (*kept, *rows)}
    lines = [flow({name: value for name in ScoreRow.__slots__ if (value := getattr(row, name))}) for row in unique.values()]
    text = "\n  - ".join([f"hwsim: {FORMAT}\nversion: {__version__}\nrows:", *lines])
    return write(path, [f"{text}\n".encode()])
