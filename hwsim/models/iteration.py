"""Time of one iteration of a server with continuous batching: prefill chunks, and answers that grow by a token.

    iteration = linear layers of all tokens together + attention of each prefill chunk + attention of the answers + output

All tokens of the iteration read the weights once, which is why requests are batched. Prefill and decode have one attention kernel
each. A chunk's share of the first is its share of a batch of equal chunks. The second is computed for the average context.

    an iteration of equal prompts only = a prefill, one of answers only = a decode step, both as in `one_pass`

With a CUDA graph, linear layers have the rows of the smallest graph that holds all tokens. Answers that are verified (speculative
decoding) have several tokens each. They attend like one token with a multiple of the heads.

Times are tabulated (`hwsim.models.kernel_tables`). The time of an iteration of answers is linear in the average context between
two knots.

**Error**: of single passes, see `docs/validation/models.md`; of the linear interpolation below 1 %, none at the knots.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from hwsim.models.architectures import transformer_layers as blocks
from hwsim.models.architectures.slices import MicrobatchSlice
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.inference import pass_layers, served_slice
from hwsim.models.kernel_tables import NOTHING, ByContext, ByPrompt, ByRows, KernelSeconds, RepeatedKernel, SingleKernelTimes
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Operation, kernels
from hwsim.models.server import padded_tokens

SQUARE: Final = 4.0  # bytes of a sum of squares


class IterationExchange(NamedTuple):
    """A collective of `ranks` GPUs, executed `times` times.

    Args:
        size: bytes of one GPU's whole array, or of a message.
    """

    operation: Operation
    size: float
    ranks: int
    times: int


def sends(
    model: Transformer, rows: int, *, tp: int, groups: int = 1, pp: int = 1, width: float = 2.0
) -> tuple[IterationExchange, ...]:
    """Return the exchanges of a replica's GPUs in an iteration of `rows` tokens per group; other arguments as in `Iterations`.

    The GPUs of a group sum the results of attention and of the feed-forward network. Groups that share experts gather their
    tokens before the experts and scatter the results. A norm over the queries and keys of all heads sums two squares per token.

    Args:
        width: bytes of an element.
    """
    size, gpus = rows * model.hidden * width, tp * groups
    normed = model.layers if model.qk_norm == "whole" else 0
    shared = sum(kind.layers for kind in model.kinds if kind.experts > 1) if groups > 1 else 0  # integers
    collectives = (
        IterationExchange("all-reduce", size, tp, 2 * model.layers - shared),
        IterationExchange("all-reduce", 2.0 * rows * SQUARE, tp, normed),
        IterationExchange("all-gather", size * groups, gpus, shared),
        IterationExchange("reduce-scatter", size * groups, gpus, shared),
        IterationExchange("send", size, 2, pp - 1),
    )
    return tuple(collective for collective in collectives if collective.times and collective.ranks > 1 and rows)


class Iterations:
    """The iterations of a model on a group of GPUs."""

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
        """Args:
        tp: GPUs that split attention and dense layers.
        graphs: batch sizes (tokens) captured as CUDA graphs; smaller batches are padded to the next one.
        tokens: tokens per answer and iteration: one, plus draft tokens to verify.
        groups: groups of `tp` GPUs with separate sequences, which share all experts (data-parallel attention).
        ep: GPUs that the experts are spread over; the remaining GPUs split each expert.
        cache: data type of keys and values, if it differs from the model's or `dtype`.
        """
        self.model, self.times, self.tp, self.dtype = model, times, tp, dtype
        self.graphs, self.tokens = graphs, tokens
        self.groups, self.ep, self.cache = groups, ep, cache
        self.host = max(0.0, times.framework.step)
        alone = SingleKernelTimes(times)
        self.sparse = any(kind.experts > 1 for kind in model.kinds)
        self._rows = ByRows(alone, lambda rows: self._row_kernels(rows, experts=False))
        self._experts = ByRows(alone, lambda rows: self._row_kernels(rows, experts=True))
        self._output = ByRows(alone, self._output_kernels)
        self._answers = ByContext(alone, self._answer_kernels, tokens)
        self._prompts = ByPrompt(alone, self._prompt_kernels)

    @functools.cached_property
    def starts(self) -> int:
        """Kernels and exchanges of all layers, each of which the host launches without a CUDA graph."""
        ops = self.times.framework.ops
        return sum(  # integers
            layer.times * (ops[item.name].kernels if item.name in ops else round(item.times))
            for layer in pass_layers(self.model, self._slice(1, 1, 1))[:-1]
            for item in layer.forward
        )

    def of(self, prompts: Sequence[tuple[int, int]], answers: int, context: float, ended: int) -> KernelSeconds:
        """Return the time of one iteration, without exchanges.

        Args:
            prompts: (tokens computed now, tokens computed before) of each prompt.
            answers: sequences in decode.
            context: average tokens that a sequence in decode attends to, including the current one.
            ended: tokens emitted.
        """
        taken = self.linear(self.rows_of(prompts, answers), self.total_of(prompts, answers))
        if prompts:
            taken = taken.plus(self.read(prompts))
        if answers:
            taken = taken.plus(self.answers(answers, context))
        taken = taken.plus(self.output(ended))
        return taken._replace(seconds=taken.seconds + self.host)

    def total_of(self, prompts: Sequence[tuple[int, int]], answers: int) -> int:
        """Return the tokens of all groups."""
        return answers * self.tokens + sum([tokens for tokens, _ in prompts])  # integers

    def rows_of(self, prompts: Sequence[tuple[int, int]], answers: int) -> int:
        """Return the tokens of the group with most tokens."""
        if self.groups == 1:
            return self.total_of(prompts, answers)
        read = sum([tokens for tokens, _ in prompts])  # integers
        return self._per_group(answers) * self.tokens + -(-read // max(1, min(self.groups, len(prompts))))

    def read(self, prompts: Sequence[tuple[int, int]]) -> KernelSeconds:
        """Return the attention time of the prompts. Groups process their prompts in parallel."""
        groups, taken = min(self.groups, len(prompts)), NOTHING
        equal_count = -(-len(prompts) // groups)
        for tokens, before in prompts:
            taken = taken.plus(self._prompts.at(equal_count, tokens, before), 1.0 / groups)
        return taken

    def _per_group(self, sequence_count: int) -> int:
        return -(-sequence_count // self.groups)

    def around(self, rows: int, ended: int, total: int | None = None) -> float:
        """Return the seconds of an iteration without attention and exchanges.

        Args:
            rows: tokens of the group with most tokens.
            ended: tokens emitted.
            total: tokens of all groups (default: `rows` in every group).
        """
        total = rows * self.groups if total is None else total
        return self.linear(rows, total).seconds + self.output(ended).seconds + self.host

    def linear(self, rows: int, total: int | None = None) -> KernelSeconds:
        """Return the time of all kernels of all layers except attention, and of the embedding; arguments as in `around`."""
        if not rows:
            return NOTHING
        taken, all_rows = self._rows.at(self.padded(rows)), rows if self.groups == 1 or total is None else self._per_group(total)
        return taken.plus(self._experts.at(self.padded(all_rows))) if self.sparse else taken

    def output(self, ended: int) -> KernelSeconds:
        """Return the time of the logits of the emitted tokens."""
        return self._output.at(self._per_group(ended)) if ended and self.model.causal else NOTHING

    def answers(self, answers: int, context: float) -> KernelSeconds:
        """Return the attention time of all layers for sequences in decode."""
        return self._answers.at(self._per_group(answers), context)

    def passing(self, rows: int, total: int) -> int:
        """Return the tokens per group of an even split whose exchanges take as long as those of the actual, uneven split.

        A group receives the tokens of all other groups and returns their results, so a group with few tokens transfers most.
        Arguments as in `around`.
        """
        if self.groups == 1:
            return rows
        others = self.groups - 1
        return max(-(-total // self.groups), -(-(total - (total - rows) // others) // others))

    def padded(self, rows: int) -> int:
        """Return the tokens after padding to the next CUDA graph; the tokens themselves above the largest graph."""
        return padded_tokens(rows, self.graphs) if rows else 0

    def _slice(self, sequences: int, tokens: int, context: int) -> MicrobatchSlice:
        part = served_slice(sequences, tokens, context, self.tp, self.dtype, self.times.framework.attention, self.times.gpu,
                      self.model.quantised)  # fmt: skip
        if self.cache:
            part = replace(part, kept=self.cache)
        return part if self.groups == self.ep == 1 else replace(part, together=self.groups, expert=self.ep)

    def _row_kernels(self, rows: int, *, experts: bool) -> Sequence[RepeatedKernel]:
        return [
            (kernel, float(layer.times))
            for layer in pass_layers(self.model, self._slice(1, rows, rows))[:-1]
            for kernel in kernels(layer.forward)
            if kernel.kind != "attention" and (kernel.work.experts is not None) == experts
        ]

    def _output_kernels(self, ended: int) -> Sequence[RepeatedKernel]:
        return [(kernel, 1.0) for kernel in blocks.output(self.model, self._slice(ended, 1, 1), training=False)]

    def _answer_kernels(self, sequences: int, context: int) -> Sequence[RepeatedKernel]:
        return self._attention(self._slice(sequences, 1, context))

    def _prompt_kernels(self, prompt_count: int, tokens: int, cached: int) -> Sequence[RepeatedKernel]:
        return self._attention(self._slice(prompt_count, tokens, tokens + cached))

    def _attention(self, part: MicrobatchSlice) -> Sequence[RepeatedKernel]:
        return [
            (kernel, float(kind.layers))
            for kind in self.model.kinds
            for kernel in blocks.forward(kind, part)
            if kernel.kind == "attention"
        ]
