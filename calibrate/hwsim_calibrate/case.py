"""Cases: calls to time, with their work and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from hwsim_calibrate.clocks import Call, Sample
from hwsim_calibrate.store import Amounts, Clock, Param

Make = Callable[[ExitStack], Call]
Timer = Callable[[Call, int], Sample]


class CannotMeasure(Exception):
    """A case cannot run on this machine: the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Case:
    """A call to time repeatedly.

    Args:
        suite: name of the suite.
        op: the function or operation.
        params: see `suites`.
        work: operations and bytes of one call.
        make: function that prepares the operands and returns the call; it registers clean-up on the stack.
        clock: the clock that counts.
        samples: number of samples per round.
        seconds: duration of one sample (s); 0 for a single call.
        timer: function that takes a sample; default: the host's clocks.
        loop: number of iterations inside a call; the time of one iteration is reported.
        max_calls: maximum number of calls per sample.
        name: unique name within the suite; default: the op and its params.
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
    max_calls: int = 1_000_000
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        words = [self.op, *(f"{key}={_word(value)}" for key, value in self.params.items())]
        object.__setattr__(self, "name", self.name or " ".join(words))

    @property
    def key(self) -> tuple[str, str]:
        """Suite and name of the case, which identify it."""
        return self.suite, self.name


def _word(value: Param) -> str:
    return "x".join(str(size) for size in value) if isinstance(value, tuple) else str(value)
