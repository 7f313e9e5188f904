"""The points of a study: every combination of the values of its paths, the last path turning fastest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

from hwsim.records import dataclass
from hwsim.spec import Mistake, SpecError
from hwsim.study.values import parse_values, scalar

MOST_POINTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Grid:
    """Paths and the values each of them takes, both in the order given.

    >>> list(Grid.of({"batch": "32, 64", "machine.gpu.count": [1, 2]}))
    [(32, 1), (32, 2), (64, 1), (64, 2)]
    """

    paths: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]

    @classmethod
    def of(cls, vary: Mapping[str, Sequence[object] | str]) -> Grid:
        """The grid of values, or of texts that write values (`"1..64:x2"`); a value given twice counts once.

        Raises:
            SpecError: nothing to vary, a path without values, or more than 10,000 points.
        """
        if not vary:
            raise SpecError([Mistake(None, "a sweep varies at least one path")])
        values: list[tuple[object, ...]] = []
        for path, given in vary.items():
            listed = parse_values(given, path) if isinstance(given, str) else tuple(scalar(each) for each in given)
            if not listed:
                raise SpecError([Mistake(None, f"'{path}' has no values to take")])
            different: dict[str, object] = {}
            for each in listed:
                different.setdefault(written(each), each)
            values.append(tuple(different.values()))
        points = prod(map(len, values))
        if points > MOST_POINTS:
            sizes = " x ".join(str(len(each)) for each in values)
            many = f"{sizes} = {points} points" if len(values) > 1 else f"{points} points"
            raise SpecError(
                [
                    Mistake(
                        None, f"{many} are more than the {MOST_POINTS} of one study", "take fewer values: 1..512:x2, 1..512:log"
                    )
                ]
            )
        return cls(tuple(vary), tuple(values))

    def __len__(self) -> int:
        return prod(map(len, self.values))

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return product(*self.values)


def written(value: object) -> str:
    """A value as a file would say it.

    >>> written(True), written(0.5), written("8 GB/s"), written(None)
    ('true', '0.5', '8 GB/s', 'null')
    """
    if isinstance(value, bool) or value is None:
        return str(value).lower().replace("none", "null")
    return str(value)
