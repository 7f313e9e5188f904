"""The time of one iteration of a server: prompts (or parts of them) that are read, and answers that grow by a token.

    iteration = linear maps of all tokens together + attention of each prompt's part + attention of the answers + output

Matrices are read once for all tokens of the iteration: that is why requests are batched. Attention is one kernel for the
prompts and one for the answers. A prompt's part of the first is its part of a batch of equal prompts; the second is computed
for the mean context.

    an iteration of equal prompts alone = a prefill, one of answers alone = a step of decoding, both as `one_pass` has them

Times are remembered. Elementwise kernels are worked out at 32 numbers of tokens an octave, attention of answers at 32 batches
and 8 contexts an octave, and interpolated between them; products, which jump from one tile to the next, are not interpolated.

**Error**: of single passes, see `docs/validation/models.md`; of the straight lines below 0.1 %.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Final, NamedTuple, TypeVar

from hwsim.devices import Work
from hwsim.models.architectures import transformer_layers as blocks
from hwsim.models.architectures.slices import Slice
from hwsim.models.architectures.transformer import Transformer
from hwsim.models.inference import passed, served
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Kernel, Operation, kernels
from hwsim.records import dataclass

K = TypeVar("K")
V = TypeVar("V")

EXACT: Final = 32  # batches and contexts up to which each is worked out itself
FINE: Final = 5  # 2**5 points an octave, of batches
COARSE: Final = 3  # of contexts
_NAME: Final = "gpu"


class Taken(NamedTuple):
    """Time of kernels on each GPU: seconds; seconds of its units and of its memory among them; operations, and bytes moved."""

    seconds: float = 0.0
    compute: float = 0.0
    memory: float = 0.0
    flop: float = 0.0
    moved: float = 0.0

    def plus(self, other: Taken, times: float = 1.0) -> Taken:
        """The sum with another, `times` times."""
        return Taken(*(here + times * there for here, there in zip(self, other, strict=True)))


NOTHING: Final = Taken()
Exchanging = Callable[[Operation, float, int], float]  # (operation, bytes of one GPU's array, GPUs): seconds


class Line(NamedTuple):
    """Seconds of an iteration of answers, which grow in proportion to the mean context from one knot to the next.

    Args:
        seconds: at the context that was asked for; slope: more for each token of mean context; until: context of the next knot.
    """

    seconds: float
    slope: float
    until: float


@dataclass(slots=True)
class Iterations:
    """Iterations of a model on a group of GPUs.

    Args:
        graphs: numbers of tokens that a graph was captured for: fewer are padded to the next.
        exchange: seconds of a collective among the first GPUs of the group; without it, kernels alone.
    """

    model: Transformer
    times: KernelTimes
    tp: int
    dtype: str
    graphs: tuple[int, ...] = ()
    exchange: Exchanging | None = None
    _works: dict[Work, tuple[float, float, float]] = field(default_factory=dict)
    _products: dict[int, Taken] = field(default_factory=dict)
    _others: dict[int, Taken] = field(default_factory=dict)
    _output: dict[int, Taken] = field(default_factory=dict)
    _prompt: dict[tuple[int, int, int], Taken] = field(default_factory=dict)
    _answers: dict[tuple[int, int], Taken] = field(default_factory=dict)
    _sent: dict[int, float] = field(default_factory=dict)
    _around: dict[tuple[int, int], float] = field(default_factory=dict)
    _lines: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)

    def line(self, answers: int, context: float) -> Line:
        """An iteration of answers alone, exchanges included, at a mean context and as it grows."""
        low, step = knot(context)
        found = self._lines.get((answers, low))
        if found is None:
            found = self._lines[answers, low] = self._line(answers, low, step)
        start, slope = found
        return Line(start + slope * (context - low), slope, float(low + step))

    def seconds(self, prompts: Sequence[tuple[int, int]], answers: int, context: float, ended: int) -> float:
        """An iteration, exchanges included; arguments as of `of`."""
        rows = answers + sum(tokens for tokens, _ in prompts)
        taken = self.around(rows, ended)
        for tokens, before in prompts:
            taken += self.prompt(len(prompts), tokens, tokens + before).seconds
        return taken + self.answers(answers, context).seconds if answers else taken

    def _line(self, answers: int, low: int, step: int) -> tuple[float, float]:
        before, after = self.answers(answers, low).seconds, self.answers(answers, low + step).seconds
        return self.around(answers, answers) + before, (after - before) / step

    def around(self, rows: int, ended: int) -> float:
        """Seconds of all of an iteration but attention, exchanges included."""
        found = self._around.get((rows, ended))
        if found is None:
            output = self.output(ended).seconds if ended and self.model.causal else 0.0
            step = max(0.0, self.times.framework.step)
            found = self._around[rows, ended] = self.linear(rows).seconds + self.exchanged(rows) + output + step
        return found

    def exchanged(self, rows: int) -> float:
        """Seconds of what the GPUs exchange while they read so many tokens."""
        if self.exchange is None or self.tp == 1:
            return 0.0
        return _between_seconds(self.padded(rows), lambda at: _known(self._sent, at, self._exchanged))

    def _exchanged(self, rows: int) -> float:
        if self.exchange is None or rows < 1:
            return 0.0
        size = rows * self.model.hidden * self._slice(1, 1, 1).width
        return 2 * self.model.layers * self.exchange("all-reduce", size, self.tp)

    def padded(self, rows: int) -> int:
        """The tokens that kernels are started for: of the smallest graph that has room; as many as there are beyond all."""
        at = bisect_left(self.graphs, rows)
        return self.graphs[at] if at < len(self.graphs) and rows > 0 else rows

    def of(self, prompts: Sequence[tuple[int, int]], answers: int, context: float, ended: int) -> Taken:
        """One iteration.

        Args:
            prompts: for each prompt the tokens read now and the tokens read before.
            answers: sequences that grow by a token; context: tokens that each looks at in the mean, itself included.
            ended: sequences that write a token.
        """
        taken = self.linear(answers + sum(tokens for tokens, _ in prompts))
        for tokens, before in prompts:
            taken = taken.plus(self.prompt(len(prompts), tokens, tokens + before))
        if answers:
            taken = taken.plus(self.answers(answers, context))
        if ended and self.model.causal:
            taken = taken.plus(self.output(ended))
        step = self.times.framework.step
        return taken._replace(seconds=taken.seconds + step) if step > 0 else taken

    def linear(self, rows: int) -> Taken:
        """All kernels of all layers but attention, and the embedding."""
        rows = self.padded(rows)
        others = _between(rows, FINE, lambda at: _known(self._others, at, lambda here: self._of_rows(here, products=False)))
        return others.plus(_known(self._products, rows, lambda here: self._of_rows(here, products=True)))

    def output(self, sequences: int) -> Taken:
        """Logits of one token of each."""
        return _known(self._output, sequences, self._of_output)

    def prompt(self, alike: int, tokens: int, context: int) -> Taken:
        """Attention of one prompt in a batch of `alike` equal prompts."""
        return _known(self._prompt, (alike, tokens, context), self._of_prompt)

    def answers(self, sequences: int, context: float) -> Taken:
        """Attention of a token of each."""

        def of_batch(batch: int) -> Taken:
            return _between(context, COARSE, lambda at: _known(self._answers, (batch, at), self._of_answers))

        return _between(sequences, FINE, of_batch)

    def _slice(self, sequences: int, tokens: int, context: int) -> Slice:
        return served(sequences, tokens, context, self.tp, self.dtype, self.times.framework.attention, self.times.gpu,
                      self.model.quantised)  # fmt: skip

    def _of_rows(self, rows: int, *, products: bool) -> Taken:
        taken = NOTHING
        for layer in passed(self.model, self._slice(1, rows, rows))[:-1]:
            chosen = (
                kernel
                for kernel in kernels(layer.forward)
                if kernel.kind != "attention" and (kernel.work.mix == "matmul") == products
            )
            taken = taken.plus(self._taken(chosen), layer.times)
        return taken

    def _of_output(self, sequences: int) -> Taken:
        return self._taken(blocks.output(self.model, self._slice(sequences, 1, 1), training=False))

    def _of_prompt(self, key: tuple[int, int, int]) -> Taken:
        alike, tokens, context = key
        return self._attention(self._slice(alike, tokens, context), 1.0 / alike)

    def _of_answers(self, key: tuple[int, int]) -> Taken:
        batch, context = key
        return self._attention(self._slice(batch, 1, context))

    def _attention(self, part: Slice, times: float = 1.0) -> Taken:
        """Attention of all layers."""
        taken = NOTHING
        for kind in self.model.kinds:
            taken = taken.plus(self._taken(_attention(kind, part)), kind.layers * times)
        return taken

    def _taken(self, group: Iterable[Kernel]) -> Taken:
        taken = NOTHING
        for kernel in group:
            work = self.times.asked(kernel)
            alone, compute, memory = _known(self._works, work, self._drawn)
            seconds = self.times.seconds(kernel)
            slower = seconds / alone if alone > 0 else 0.0
            taken = taken.plus(
                Taken(
                    seconds,
                    min(seconds, slower * compute),
                    min(seconds, kernel.times * memory),
                    kernel.times * work.flop,
                    kernel.times * work.traffic,
                )
            )
        return taken

    def _drawn(self, work: Work) -> tuple[float, float, float]:
        """Seconds of a kernel in the GPU's own model, of them of its units, and of its memory."""
        demand = self.times.gpu.compute(_NAME, work).demand
        alone = self.times.known.setdefault(work, demand.alone(self.times.rates))
        amounts = dict(demand.amounts)
        return alone, amounts.get(f"{_NAME}.compute", 0.0), amounts.get(f"{_NAME}.memory", 0.0)


def _attention(model: Transformer, part: Slice) -> tuple[Kernel, ...]:
    return tuple(each for each in blocks.forward(model, part) if each.kind == "attention")


def _known(table: dict[K, V], key: K, make: Callable[[K], V]) -> V:
    found = table.get(key)
    if found is None:
        found = table[key] = make(key)
    return found


def knot(context: float) -> tuple[int, int]:
    """The last knot up to a context, and tokens from it to the next.

    >>> knot(5.5), knot(1000.0), knot(1024)
    ((5, 1), (960, 64), (1024, 128))
    """
    floor = int(context)
    step = 1 if floor < EXACT else 1 << floor.bit_length() - 1 - COARSE
    return floor // step * step, step


def _between_seconds(rows: int, at: Callable[[int], float]) -> float:
    """Seconds at a number of tokens, between numbers whose collectives are worked out."""
    step = 1 if rows < EXACT else 1 << rows.bit_length() - 1 - FINE
    low = rows // step * step
    return at(low) if rows == low else at(low) + (at(low + step) - at(low)) * (rows - low) / step


def _between(value: float, fine: int, at: Callable[[int], Taken]) -> Taken:
    """The function at a number, interpolated between the nearest points of a grid of 2**fine points an octave."""
    floor = int(value)
    step = 1 if floor < EXACT else 1 << max(0, floor.bit_length() - 1 - fine)
    low = floor // step * step
    part = (value - low) / step
    if part <= 0:
        return at(low)
    return NOTHING.plus(at(low), 1 - part).plus(at(low + step), part)
