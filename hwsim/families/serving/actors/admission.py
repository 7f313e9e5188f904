"""Admission control: KV-cache blocks that are reserved for the future output of running requests.

The key `admit:` of a server sets the condition for a request to join the batch:

    prompt    the blocks of its prompt are free
    answer    the cache has blocks for prompts and entire outputs of all requests, as in TensorRT-LLM
    ratio     a share of all tokens still to be output is free; the share falls while no request is preempted, as in SGLang
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final

from hwsim.families.serving.actors.run import Sequence
from hwsim.families.serving.workload.settings import Settings
from hwsim.records import dataclass

WRITTEN: Final = 20  # tokens that SGLang adds to those written when it raises the ratio (`retract_decode`)


@dataclass(slots=True)
class Reservations:
    """The reservations of running requests.

    Args:
        settings: settings of the server.
        need: function of the tokens of a sequence that returns its blocks.
        whole: blocks of all prompts and outputs (`admit: answer`).
        rest: tokens still to be output (`admit: ratio`).
        outputs: output tokens of all running requests (`admit: ratio`).
        ratio: (reserved share of `rest`, decode iteration at which it was set).
    """

    settings: Settings
    need: Callable[[int], int]
    whole: int = 0
    rest: int = 0
    outputs: int = 0
    ratio: tuple[float, int] = field(init=False)

    def __post_init__(self) -> None:
        self.ratio = self.settings.promise[0], 0

    def counts(self, sequence: Sequence, sign: int) -> None:
        """Add (sign 1) or remove (sign -1) the reservation of a request."""
        settings = self.settings
        if settings.admit == "answer":
            self.whole += sign * self.need(sequence.prompt + sequence.output)
        elif settings.admit == "ratio":
            self.rest += sign * (min(sequence.output, settings.promise[3]) - sequence.written)
            self.outputs += sign * sequence.output

    def writes(self, tokens: int) -> None:
        """Subtract output tokens from the reservation."""
        if self.settings.admit == "ratio":
            self.rest -= tokens

    def part(self, count: int) -> float:
        """Return the reserved share of the tokens still to be output, after `count` decode iterations."""
        first, least, steps, _ = self.settings.promise
        ratio, since = self.ratio
        return max(least, ratio - (first - least) * (count - since) / steps)

    def breaks(self, answers: int, count: int) -> None:
        """Raise the reserved share after a preemption, whose request has been removed."""
        if self.settings.admit == "ratio":
            written = max(0, self.outputs - self.rest)
            ratio = min(1.0, (written + WRITTEN * answers) / max(1, self.outputs))
            self.ratio = max(self.part(count), ratio), count

    def allow(self, sequence: Sequence, rest: int, free: int, blocks: int, count: int, promised: int) -> bool:
        """Whether a request whose prompt fits may join.

        Args:
            sequence: the request.
            rest: prompt tokens to compute.
            free: number of free blocks.
            blocks: total number of blocks.
            count: decode iterations so far.
            promised: tokens reserved for others that join in the same iteration.
        """
        settings = self.settings
        if settings.admit == "answer":
            return self.whole + self.need(sequence.prompt + sequence.output) <= blocks
        if settings.admit == "ratio":
            kept = int(self.part(count) * max(0, self.rest)) + promised
            return rest + min(sequence.output - sequence.written, settings.promise[3]) + kept < free * settings.block
        return True
