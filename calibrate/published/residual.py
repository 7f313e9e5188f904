"""Residuals: a measured row, its prediction, and the data that the prediction's constants were fitted to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hwsim.origins import Case
from published.score import Miss

FOLDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """One prediction and its measurement.

    Args:
        topic, regime: topic and regime of the model, such as "product" and "big": an entry of `errors.yaml`.
        case: data held out of the fit. "known": none (other rows of the device and source were used); "source": the source;
            "device": the device, but not its twins; "generation": its generation; "outside": no similar device was fitted.
        unit: the held-out device, generation or source (for "known" rows the fold, see `folded`).
        group: source x device x software; groups have equal weight.
        row: name; a row may have several cases.
        work: the work without the device; rows of equal work on two devices form a ratio.
        device: device of the library.
        predicted, measured: time in seconds.
    """

    topic: str
    regime: str
    case: Case
    unit: str
    group: str
    row: str
    work: str
    device: str
    predicted: float
    measured: float

    @property
    def log(self) -> float:
        """ln(predicted / measured): positive if the prediction is too slow."""
        return math.log(self.predicted / self.measured)

    @property
    def miss(self) -> Miss:
        """The row in the form of a score."""
        return Miss(self.row, self.predicted, self.measured, self.group)


def of_miss(
    miss: Miss, topic: str, regime: str, case: Case, *, unit: str, work: str, device: str, rate: bool = False
) -> Residual:
    """Return the residual of a row; rates are converted to the time of one unit.

    >>> of_miss(Miss("copy", 50.0, 100.0), "stream", "gpu", "known", unit="k20", work="copy", device="k20", rate=True).log > 0
    True
    """
    predicted, measured = (1 / miss.predicted, 1 / miss.measured) if rate else (miss.predicted, miss.measured)
    return Residual(
        topic=topic,
        regime=regime,
        case=case,
        unit=unit,
        group=miss.group or device,
        row=miss.row,
        work=work,
        device=device,
        predicted=predicted,
        measured=measured,
    )


def misses(found: Iterable[Residual], *cases: Case) -> list[Miss]:
    """Return the rows of these cases in the form of a score."""
    return [residual.miss for residual in found if residual.case in cases]


def folded(found: Iterable[Residual]) -> Iterator[Residual]:
    """Return known rows in folds: every fifth row of a group is held out together."""
    seen: dict[str, int] = {}
    for residual in found:
        if residual.case != "known":
            yield residual
            continue
        at = seen[residual.group] = seen.get(residual.group, -1) + 1
        yield replace(residual, unit=f"fold {at % FOLDS}")


def left_out(name: str, made: Mapping[str, Sequence[str]]) -> Iterator[tuple[Case, str, tuple[str, ...]]]:
    """Return (case, held-out unit, remaining parts) for each part: without itself, then without its generation.

    Args:
        made: (generation, kind) of each part.

    >>> list(left_out("k20", {"k20": ("kepler", "gpu"), "k40": ("kepler", "gpu"), "p100": ("pascal", "gpu"), "pi": ("a53", "c")}))
    [('device', 'k20', ('k40',)), ('generation', 'kepler', ('p100',))]
    """
    generation, kind = made[name]
    if twins := tuple(part for part, of in made.items() if of[0] == generation and part != name):
        yield "device", name, twins
    others = tuple(part for part, of in made.items() if of[0] != generation)
    alike = tuple(other for other in others if made[other][1] == kind)
    yield ("generation" if alike else "outside"), generation, alike or others
