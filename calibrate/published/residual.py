"""A row that was measured, what the model says of it, and what the model had seen when it said so."""

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
    """One prediction beside a measurement.

    Args:
        topic, regime: of the model that is judged, "product" and "big": `errors.yaml` has a line for each pair and case.
        case: what was left out when the constants were found. "known": other rows of the same device and source were seen;
            "source": none of the source; "device": none of the device, though twins of it; "generation": none of its
            generation; "outside": none of anything alike.
        unit: what was left out (of "known" rows the fold, which `folded` names): rows of a unit miss together.
        group: source x device x software; every group counts alike however many rows it has.
        row: its name; the same row may stand under several cases.
        work: what was done, without the device: rows of equal work on two devices make a ratio.
        device: of the library.
        predicted, measured: seconds.
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
        """ln(predicted / measured): above 0 where the prediction is too slow."""
        return math.log(self.predicted / self.measured)

    @property
    def miss(self) -> Miss:
        """The row as a score has it."""
        return Miss(self.row, self.predicted, self.measured, self.group)


def of_miss(
    miss: Miss, topic: str, regime: str, case: Case, *, unit: str, work: str, device: str, rate: bool = False
) -> Residual:
    """The residual of a row; of a rate the seconds of one unit of it.

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
    """The rows of these cases, as a score has them."""
    return [each.miss for each in found if each.case in cases]


def folded(found: Iterable[Residual]) -> Iterator[Residual]:
    """Known rows in folds: every fifth row of a group is left out together, so that the others of its device calibrate."""
    seen: dict[str, int] = {}
    for each in found:
        if each.case != "known":
            yield each
            continue
        at = seen[each.group] = seen.get(each.group, -1) + 1
        yield replace(each, unit=f"fold {at % FOLDS}")


def left_out(name: str, made: Mapping[str, Sequence[str]]) -> Iterator[tuple[Case, str, tuple[str, ...]]]:
    """(case, what is left out, the parts that are not): a part without itself, then without its generation, from its kind or any.

    Args:
        made: (generation, kind) of each part.

    >>> list(left_out("k20", {"k20": ("kepler", "gpu"), "k40": ("kepler", "gpu"), "p100": ("pascal", "gpu"), "pi": ("a53", "c")}))
    [('device', 'k20', ('k40',)), ('generation', 'kepler', ('p100',))]
    """
    generation, kind = made[name]
    if twins := tuple(each for each, of in made.items() if of[0] == generation and each != name):
        yield "device", name, twins
    others = tuple(each for each, of in made.items() if of[0] != generation)
    alike = tuple(other for other in others if made[other][1] == kind)
    yield ("generation" if alike else "outside"), generation, alike or others
