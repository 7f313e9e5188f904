"""Room of the cache of a copy that is kept for requests that have joined, and whether one more joins.

`admit:` says when one joins:

    prompt    blocks of the prompt are free
    answer    blocks of the whole answers of all are there, as TensorRT-LLM keeps them
    ratio     a part of all tokens that are still to be written is free, which shrinks while nothing is put off, as in SGLang
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
class Promises:
    """Room that is promised to requests that have joined.

    Args:
        need: blocks of a sequence with a number of tokens. whole: blocks of the whole requests.
        rest: tokens that they have yet to write; outputs: of their answers.
        ratio: part of them for which room is kept, and at which count of steps it was so.
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
        """Note a request that joins (1), or leaves (-1), with what it has yet to write."""
        settings = self.settings
        if settings.admit == "answer":
            self.whole += sign * self.need(sequence.prompt + sequence.output)
        elif settings.admit == "ratio":
            self.rest += sign * (min(sequence.output, settings.promise[3]) - sequence.written)
            self.outputs += sign * sequence.output

    def writes(self, tokens: int) -> None:
        """Note tokens that are written."""
        if self.settings.admit == "ratio":
            self.rest -= tokens

    def part(self, count: int) -> float:
        """Part of the tokens still to be written for which room is kept after a count of steps."""
        first, least, steps, _ = self.settings.promise
        ratio, since = self.ratio
        return max(least, ratio - (first - least) * (count - since) / steps)

    def breaks(self, answers: int, count: int) -> None:
        """A request is put off, and left already: more room is kept."""
        if self.settings.admit == "ratio":
            written = max(0, self.outputs - self.rest)
            ratio = min(1.0, (written + WRITTEN * answers) / max(1, self.outputs))
            self.ratio = max(self.part(count), ratio), count

    def allow(self, sequence: Sequence, rest: int, free: int, blocks: int, count: int, promised: int) -> bool:
        """Whether one more joins whose prompt has room.

        Args:
            rest: tokens of its prompt that are to be read. free, blocks: free ones and all.
            promised: tokens promised to others that join in the same iteration.
        """
        settings = self.settings
        if settings.admit == "answer":
            return self.whole + self.need(sequence.prompt + sequence.output) <= blocks
        if settings.admit == "ratio":
            kept = int(self.part(count) * max(0, self.rest)) + promised
            return rest + min(sequence.output - sequence.written, settings.promise[3]) + kept < free * settings.block
        return True
