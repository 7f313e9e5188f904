"""Attention data parallelism with balanced prefill: prompts wait until all groups of GPUs can start a prefill together.

Prefill starts once every group has a queued prompt, or once a group has no request in decode. Otherwise it starts after a
timeout, counted in iterations since the last such prefill.

**Source**: TensorRT-LLM@000439672005, tensorrt_llm/_torch/pyexecutor/py_executor.py (`attention_dp_config`: enable_balance,
timeout_iters; batching_wait_iters 0). **Range**: a new request is assigned to the group with the fewest requests.
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
    """The groups of GPUs of a replica and their requests.

    Args:
        count: number of groups.
        most: timeout of a queued prompt in iterations; 0: prompts do not wait.
        since: iteration of the last balanced prefill.
    """

    count: int
    most: int
    since: int = 0
    _members: list[int] = field(init=False)
    _writing: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._members, self._writing = [0] * self.count, [0] * self.count

    def add(self, sequence: Sequence) -> None:
        """Assign a new request to the group with the fewest requests."""
        sequence.group = self._members.index(min(self._members))
        self._members[sequence.group] += 1

    def remove(self, sequence: Sequence) -> None:
        """Remove a completed request."""
        self._members[sequence.group] -= 1

    def writes(self, sequence: Sequence, sign: int) -> None:
        """Count a request that starts (sign 1) or ends (sign -1) decode."""
        self._writing[sequence.group] += sign

    def opens(self, waiting: Iterable[Sequence], door: int, iteration: int) -> bool:
        """Whether queued prompts start prefill in this iteration; the head of the queue has been seen."""
        has_prompt = [False] * self.count
        for sequence in takewhile(lambda sequence: sequence.at <= door, waiting):
            has_prompt[sequence.group] = True
            if all(has_prompt):
                break
        if all(has_prompt) or not all(self._writing):
            self.since = iteration
            return True
        return iteration > self.since and (iteration - self.since) % self.most == 0

    def turn(self, iteration: int) -> int:
        """Return the iterations until the next timeout."""
        return self.most - (iteration - self.since) % self.most
