"""The time of one iteration of a server: prompts (or parts of them) that are read, and answers that grow by a token.

    iteration = linear maps of all tokens together + attention of each prompt's part + attention of the answers + output

Matrices are read once for all tokens of the iteration: that is why requests are batched. Attention is one kernel for the
prompts and one for the answers. A prompt's part of the first is its part of a batch of equal prompts; the second is computed
for the mean context.

    an iteration of equal prompts alone = a prefill, one of answers alone = a step of decoding, both as `one_pass` has them

If a CUDA graph starts the kernels, the linear maps have the rows of the smallest graph with room for all tokens. Answers
that are verified (speculative decoding) have several tokens each: they attend as one token with as many times the heads.

Times are tabled (`hwsim.models.kernel_tables`). An iteration of answers is a line of the mean context between two knots.

**Error**: of single passes, see `docs/validation/models.md`; of the straight lines below 1 %, none at the knots.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hwsim.models.architectures import transformer_layers as blocks
from hwsim.models.architectures.slices import Slice
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.inference import passed, served
from hwsim.models.kernel_tables import NOTHING, ByContext, ByPrompt, ByRows, Counted, OneByOne, Taken
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Operation, kernels
from hwsim.models.server import padded

SQUARE: Final = 4.0  # bytes of a sum of squares


class Sent(NamedTuple):
    """A collective of `ranks` GPUs, `times` times; size: bytes of one GPU's whole array, or of a message."""

    operation: Operation
    size: float
    ranks: int
    times: int


def sends(model: Transformer, rows: int, *, tp: int, groups: int = 1, pp: int = 1, width: float = 2.0) -> tuple[Sent, ...]:
    """Exchanges of the GPUs of a copy in an iteration of `rows` tokens of each group; arguments as of `Iterations`.

    The GPUs of a group sum what they have of attention, and of what follows. Groups that share experts gather their tokens
    before those, and scatter what comes of them. A norm over the queries and keys of all heads sums two squares of a token.

    width: bytes of a number of a token.
    """
    size, gpus = rows * model.hidden * width, tp * groups
    normed = model.layers if model.qk_norm == "whole" else 0
    shared = sum(kind.layers for kind in model.kinds if kind.experts > 1) if groups > 1 else 0  # integers
    collectives = (
        Sent("all-reduce", size, tp, 2 * model.layers - shared),
        Sent("all-reduce", 2.0 * rows * SQUARE, tp, normed),
        Sent("all-gather", size * groups, gpus, shared),
        Sent("reduce-scatter", size * groups, gpus, shared),
        Sent("send", size, 2, pp - 1),
    )
    return tuple(collective for collective in collectives if collective.times and collective.ranks > 1 and rows)


class Iterations:
    """Iterations of a model on a group of GPUs."""

    def __init__(
        self,
        model: Transformer,
        times: KernelTimes,
        tp: int,
        dtype: str,
        graphs: tuple[int, ...] = (),
        tokens: int = 1,
        groups: int = 1,
        ep: int = 1,
        cache: str = "",
    ) -> None:
        """
        Args:
            tp: GPUs that attention and dense networks are split over.
            graphs: numbers of tokens that a graph was captured for: fewer are padded to the next.
            tokens: tokens of each answer that pass at once: one, and drafts that are verified.
            groups: groups of `tp` GPUs, each with sequences of its own; experts are shared by all (data-parallel attention).
            ep: GPUs that experts are spread over; what is left of all of them splits each expert.
            cache: number format of keys and values, if another than the model's or `dtype`.
        """
        self.model, self.times, self.tp, self.dtype = model, times, tp, dtype
        self.graphs, self.tokens = graphs, tokens
        self.groups, self.ep, self.cache = groups, ep, cache
        self.host = max(0.0, times.framework.step)
        alone = OneByOne(times)
        self.sparse = any(kind.experts > 1 for kind in model.kinds)
        self._rows = ByRows(alone, lambda rows: self._of_rows(rows, experts=False))
        self._experts = ByRows(alone, lambda rows: self._of_rows(rows, experts=True))
        self._output = ByRows(alone, self._of_output)
        self._answers = ByContext(alone, self._of_answers, tokens)
        self._prompts = ByPrompt(alone, self._of_prompts)

    @functools.cached_property
    def starts(self) -> int:
        """Kernels and exchanges of all layers: the host starts each one where no graph does."""
        ops = self.times.framework.ops
        return sum(  # integers
            layer.times * (ops[item.name].kernels if item.name in ops else round(item.times))
            for layer in passed(self.model, self._slice(1, 1, 1))[:-1]
            for item in layer.forward
        )

    def of(self, prompts: Sequence[tuple[int, int]], answers: int, context: float, ended: int) -> Taken:
        """One iteration, without exchanges.

        Args:
            prompts: for each prompt the tokens read now and the tokens read before.
            answers: sequences that grow; context: tokens that each looks at in the mean, itself included.
            ended: tokens that are written.
        """
        taken = self.linear(self.rows_of(prompts, answers), self.total_of(prompts, answers))
        if prompts:
            taken = taken.plus(self.read(prompts))
        if answers:
            taken = taken.plus(self.answers(answers, context))
        taken = taken.plus(self.output(ended))
        return taken._replace(seconds=taken.seconds + self.host)

    def total_of(self, prompts: Sequence[tuple[int, int]], answers: int) -> int:
        """Tokens of all groups."""
        return answers * self.tokens + sum([tokens for tokens, _ in prompts])  # integers

    def rows_of(self, prompts: Sequence[tuple[int, int]], answers: int) -> int:
        """Tokens of the group with most of them."""
        if self.groups == 1:
            return self.total_of(prompts, answers)
        read = sum([tokens for tokens, _ in prompts])  # integers
        return self._of_group(answers) * self.tokens + -(-read // max(1, min(self.groups, len(prompts))))

    def read(self, prompts: Sequence[tuple[int, int]]) -> Taken:
        """Attention of the prompts; groups read theirs side by side."""
        groups, taken = min(self.groups, len(prompts)), NOTHING
        alike = -(-len(prompts) // groups)
        for tokens, before in prompts:
            taken = taken.plus(self._prompts.at(alike, tokens, before), 1.0 / groups)
        return taken

    def _of_group(self, many: int) -> int:
        """The part of a group of a number of sequences."""
        return -(-many // self.groups)

    def around(self, rows: int, ended: int, total: int | None = None) -> float:
        """Seconds of all of an iteration but attention and exchanges.

        rows: tokens of the group with most of them; ended: tokens that are written; total: tokens of all groups (default: all
        have as many).
        """
        total = rows * self.groups if total is None else total
        return self.linear(rows, total).seconds + self.output(ended).seconds + self.host

    def linear(self, rows: int, total: int | None = None) -> Taken:
        """All kernels of all layers but attention, and the embedding; arguments as of `around`."""
        if not rows:
            return NOTHING
        taken, all_rows = self._rows.at(self.padded(rows)), rows if self.groups == 1 or total is None else self._of_group(total)
        return taken.plus(self._experts.at(self.padded(all_rows))) if self.sparse else taken

    def output(self, ended: int) -> Taken:
        """Logits of the tokens that are written."""
        return self._output.at(self._of_group(ended)) if ended and self.model.causal else NOTHING

    def answers(self, answers: int, context: float) -> Taken:
        """Attention of all layers, of sequences that grow."""
        return self._answers.at(self._of_group(answers), context)

    def passing(self, rows: int, total: int) -> int:
        """Tokens of each group in the even split whose exchanges take as long as those in the uneven split.

        Arguments as of `around`.

        A group receives the tokens of all others, and passes on what comes of them, so that one with few tokens has most to pass.
        """
        if self.groups == 1:
            return rows
        others = self.groups - 1
        return max(-(-total // self.groups), -(-(total - (total - rows) // others) // others))

    def padded(self, rows: int) -> int:
        """The tokens that kernels are started for: of the smallest graph that has room; as many as there are beyond all."""
        return padded(rows, self.graphs) if rows else 0

    def _slice(self, sequences: int, tokens: int, context: int) -> Slice:
        part = served(sequences, tokens, context, self.tp, self.dtype, self.times.framework.attention, self.times.gpu,
                      self.model.quantised)  # fmt: skip
        if self.cache:
            part = replace(part, kept=self.cache)
        return part if self.groups == self.ep == 1 else replace(part, together=self.groups, expert=self.ep)

    def _of_rows(self, rows: int, *, experts: bool) -> Sequence[Counted]:
        return [
            (kernel, float(layer.times))
            for layer in passed(self.model, self._slice(1, rows, rows))[:-1]
            for kernel in kernels(layer.forward)
            if kernel.kind != "attention" and (kernel.work.experts is not None) == experts
        ]

    def _of_output(self, ended: int) -> Sequence[Counted]:
        return [(kernel, 1.0) for kernel in blocks.output(self.model, self._slice(ended, 1, 1), training=False)]

    def _of_answers(self, sequences: int, context: int) -> Sequence[Counted]:
        return self._attention(self._slice(sequences, 1, context))

    def _of_prompts(self, alike: int, tokens: int, cached: int) -> Sequence[Counted]:
        return self._attention(self._slice(alike, tokens, tokens + cached))

    def _attention(self, part: Slice) -> Sequence[Counted]:
        """Attention of all layers."""
        return [
            (kernel, float(kind.layers))
            for kind in self.model.kinds
            for kernel in blocks.forward(kind, part)
            if kernel.kind == "attention"
        ]
