"""Prompts of data-parallel attention that wait for each other, so that no group of GPUs reads while the others look on.

They are read once every group has one, or once a group writes no answer; else at the next turn of a clock that counts
iterations since they were last read so.

**Source**: TensorRT-LLM@000439672005, tensorrt_llm/_torch/pyexecutor/py_executor.py (`attention_dp_config`: enable_balance,
timeout_iters; batching_wait_iters 0). **Range**: a request belongs to the group with the fewest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import takewhile
from typing import Final

from hwsim.families.serving.actors.run import Sequence
from hwsim.records import dataclass

NEVER: Final = 1 << 60


@dataclass(slots=True)
class Groups:
    """The requests of each group.

    Args:
        count: groups; most: iterations that prompts wait at most; 0: they do not.
        since: the iteration at which prompts were last read, by all groups or for want of answers.
    """

    count: int
    most: int
    since: int = 0
    _members: list[int] = field(init=False)
    _writing: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._members, self._writing = [0] * self.count, [0] * self.count

    def add(self, sequence: Sequence) -> None:
        """A request comes."""
        sequence.group = self._members.index(min(self._members))
        self._members[sequence.group] += 1

    def remove(self, sequence: Sequence) -> None:
        """A request is answered."""
        self._members[sequence.group] -= 1

    def writes(self, sequence: Sequence, sign: int) -> None:
        """A request begins to write its answer (1), or ends (-1)."""
        self._writing[sequence.group] += sign

    def opens(self, waiting: Iterable[Sequence], door: int, iteration: int) -> bool:
        """Whether prompts that wait are read in this iteration; the first to wait has been seen."""
        wait = [False] * self.count
        for sequence in takewhile(lambda each: each.at <= door, waiting):
            wait[sequence.group] = True
            if all(wait):
                break
        if all(wait) or not all(self._writing):
            self.since = iteration
            return True
        return iteration > self.since and (iteration - self.since) % self.most == 0

    def turn(self, iteration: int) -> int:
        """Iterations from this one to the next turn of the clock."""
        return self.most - (iteration - self.since) % self.most
