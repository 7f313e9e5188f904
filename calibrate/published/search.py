"""Parameters that make a sum of errors small: steps along one parameter at a time, that shrink."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Error = Callable[[Sequence[float]], float]


def descend(error: Error, start: Sequence[float], *, step: float = 0.2, rounds: int = 60, finest: float = 1e-4) -> list[float]:
    """The parameters, all positive, that this search ends at: each is tried larger and smaller by a factor.

    Deterministic, and good enough for errors of a few parameters that are not all too entangled.

    >>> [round(each, 2) for each in descend(lambda p: (p[0] - 3) ** 2 + (p[1] - 0.5) ** 2, [1.0, 1.0])]
    [3.0, 0.5]
    """
    best, at = error(start), list(start)
    steps = [step] * len(at)
    for _ in range(rounds):
        for index in range(len(at)):
            moved = False
            for factor in (1.0 + steps[index], 1.0 / (1.0 + steps[index])):
                while True:
                    trial = list(at)
                    trial[index] *= factor
                    found = error(trial)
                    if not found < best:
                        break
                    best, at, moved = found, trial, True
                if moved:
                    break
            steps[index] = steps[index] * 1.3 if moved else steps[index] / 2
        if max(steps) < finest:
            break
    return at
