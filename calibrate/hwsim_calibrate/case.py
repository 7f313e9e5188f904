"""A call to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.store import Amounts, Clock, Param

Make = Callable[[ExitStack], Call]
Timer = Callable[[Call, int], Sample]


class CannotMeasure(Exception):
    """A case that this machine cannot run: no permission, no memory, no such call."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call to be timed again and again.

    Args:
        make: prepares arrays, files, threads, and returns the call; clean-up goes on the stack.
        clock: the clock that counts.
        samples: times taken per round.
        seconds: length of one sample; 0 for one call each.
        timer: takes one sample instead of the host's clocks.
        loop: turns inside a call; the time of one turn is reported.
        most: calls in one sample, at most.
    """

    suite: str
    op: str
    params: Mapping[str, Param]
    work: Amounts
    make: Make
    clock: Clock = "cpu"
    samples: int = 4
    seconds: float = 1.5e-3
    timer: Timer | None = None
    loop: int = 1
    most: int = 1_000_000
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        words = [self.op, *(f"{key}={_word(value)}" for key, value in self.params.items())]
        object.__setattr__(self, "name", self.name or " ".join(words))

    @property
    def key(self) -> tuple[str, str]:
        """The identity of the case: names are unique within a suite."""
        return self.suite, self.name


def _word(value: Param) -> str:
    return "x".join(str(each) for each in value) if isinstance(value, tuple) else str(value)
