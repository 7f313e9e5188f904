"""The cost of a tiled matmul on one GPU, and its derivation."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hwsim.demand import Term, fourth_power, soft_max
from hwsim.devices.gpu_access import StreamTimes, stream
from hwsim.devices.gpu_matmul import ROUNDING, Chip, TilePlan, Tiling, by_rows, fastest_tile_plan
from hwsim.devices.gpu_memory import Hierarchy, ThreadStream
from hwsim.devices.roofline import WORKLOAD, CapacityDraw, Input, latency_term, source_of
from hwsim.devices.work import MatmulShape, Work
from hwsim.formats import precise
from hwsim.origins import Origin, UncertaintySource, case_of
from hwsim.records import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SKINNY: Final = 128  # rows or columns up to which a matmul has the error of skinny matmuls
TINY: Final = 20e-6  # duration (s) below which a matmul has the error of tiny matmuls
CACHED_OPERAND_SHARE: Final = 0.5  # share of the last-level cache that holds the first operand, written by the previous kernel
_TOPICS: Final[Mapping[str, str]] = {"fp8": "product8", "int8": "product8", "fp4": "product4", "int4": "product4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TiledMatmul:
    """A matmul with all inputs of its time.

    Args:
        name: full name of the GPU.
        work: work of the matmul.
        product: shape of the matmul.
        key: key of `matmul` whose tiles are used.
        tiling: these tiles.
        chip: numbers of the GPU.
        peak_source: source of the peak.
        parts: memory levels of the GPU.
        sources: sources of the GPU's numbers.
    """

    name: str
    work: Work
    product: MatmulShape
    key: str
    tiling: Tiling
    chip: Chip
    peak_source: Origin
    parts: Hierarchy
    sources: Mapping[str, Origin]

    @property
    def widths(self) -> tuple[float, float]:
        """Sizes of an element of the first and of the second operand (B)."""
        product = self.product
        if product.element > 0:
            return product.element, product.weight or product.element
        if product.weight > 0:
            second = product.batch * product.k * product.n * product.weight
            return (self.work.reads - second) / (product.batch * product.k * product.m), product.weight
        width = self.work.reads / (product.batch * product.k * (product.m + product.n))
        return width, width

    def served(self) -> StreamTimes:
        """Return the memory time: each matrix crosses once, except the part of the first operand in the last-level cache."""
        work, tiling, l2 = self.work, self.tiling, self.parts.l2
        is_reused = work.working_set is not None and l2 is not None and l2.bandwidth is not None
        if tiling.memory is None or self.product.element > 0 or is_reused:
            return stream(self.name, self.parts, ThreadStream(reads=work.reads, writes=work.writes, working_set=work.working_set))
        product, memory = self.product, self.parts.memory
        operand = float(product.m) * product.k * product.batch * self.widths[0]
        cached = operand / (1.0 + fourth_power(operand / (CACHED_OPERAND_SHARE * l2.size))) if l2 is not None else 0.0
        traffic = max(work.reads - cached, 0.0) + work.writes
        seconds = traffic / (memory.bandwidth * tiling.memory)
        inputs: list[Input] = [("traffic", precise(work.traffic, "B"), WORKLOAD)]
        formula = "traffic / (bandwidth x efficiency)"
        if cached > 0:
            formula = "(traffic - held) / (bandwidth x efficiency)"
            inputs.append(
                (
                    "held",
                    precise(cached, "B"),
                    "of the first operand, in the last-level cache: " + source_of(self.sources, "l2.size"),
                )
            )
        inputs += [
            ("bandwidth", precise(memory.bandwidth, "B/s"), source_of(self.sources, "memory.bandwidth")),
            ("efficiency", precise(tiling.memory, "%"), self._source("memory")),
        ]
        capacity = f"{self.name}.memory"
        return StreamTimes(
            CapacityDraw(capacity, seconds, 1.0, traffic, "B", Term("memory", formula, tuple(inputs), seconds, capacity)), 0.0, ()
        )

    def draws(
        self, served: StreamTimes, launches: list[Term], least: float
    ) -> tuple[tuple[CapacityDraw, ...], StreamTimes, float, list[Term]]:
        """Return (draws, memory time, minimum duration, startup lines), each with its derivation.

        Args:
            served: memory time.
            launches: launch lines of the kernel.
            least: time in which the host launches a kernel (s).
        """
        memory = max(served.draw.amount, served.floor)
        cut = fastest_tile_plan(self.product, self.widths, self.tiling, self.chip, memory)
        capacity = f"{self.name}.compute"
        seconds = cut.tiles * cut.tile / self.chip.multiprocessors
        why = self._compute_term(cut, seconds) if cut.computing >= cut.loading else self._load_term(cut, seconds)
        starts = [*launches, *self._start_terms()]
        before = math.fsum(term.seconds for term in starts)
        lines = [self._wave_term(cut, memory)]
        if least > before + cut.time:
            lines.append(self._launch_term(least, before))
        doubt = self._doubt(before + cut.time)
        if doubt is not None:
            with_doubt = functools.partial(_with_doubt, doubt)
            why, starts, lines = with_doubt(why), [with_doubt(term) for term in starts], [with_doubt(term) for term in lines]
            served = replace(served, draw=replace(served.draw, why=with_doubt(served.draw.why)))
        draws = (
            CapacityDraw(capacity, seconds, 1.0, self.work.flop, "FLOP", why),
            *(CapacityDraw(capacity, 0.0, 1.0, 0.0, "FLOP", line) for line in lines),
        )
        return draws, served, max(line.seconds for line in lines), starts

    def by_rows(
        self, rows: Floats, launches: float, least: float, *, depth: bool, streamed: bool
    ) -> tuple[Floats, Floats, Floats] | None:
        """Return (time, SM time, memory time) of the matmul in s for each number of rows, or for each depth (k).

        Returns None if the memory traffic is not proportional to the rows, and, unless `streamed`, if it is that of a stream.
        """
        import numpy as np

        product, tiling, l2, width = self.product, self.tiling, self.parts.l2, self.widths[0]
        if (tiling.memory is None and not streamed) or product.element > 0 or self.work.working_set is not None:
            return None
        rows, depths = (product.m + 0.0 * rows, rows) if depth else (rows, product.k + 0.0 * rows)
        operand = rows * (width * depths * product.batch)
        cached = (
            operand / (1.0 + fourth_power(operand / (CACHED_OPERAND_SHARE * l2.size)))
            if l2 is not None
            else np.zeros_like(operand)
        )
        others = self.work.reads - product.m * (width * product.k * product.batch)
        reads = others * (depths / product.k) + operand
        writes, sustained = self.work.writes / product.m * rows, self.parts.sustained
        if tiling.memory is None:
            alone = np.abs(reads - writes) / np.where(reads >= writes, sustained.read, sustained.write)
            memory = (alone + 2.0 * np.minimum(reads, writes) / sustained.copy) / self.parts.memory.bandwidth
        else:
            memory = (np.maximum(reads - cached, 0.0) + writes) / (self.parts.memory.bandwidth * tiling.memory)
        time, busy = by_rows(rows, depths, product, self.widths, tiling, self.chip, memory)
        starts: Floats = launches + tiling.start + np.zeros_like(operand)
        if tiling.cast is not None and product.cast > 0:
            lines = rows * product.batch
            size = lines * depths * (product.cast + width)
            kept = CACHED_OPERAND_SHARE * l2.size if l2 is not None else 0.0
            rate = np.where(size > kept, self._cast_rate(math.inf)[0], self._cast_rate(0.0)[0])
            starts = starts + tiling.cast.start + lines * tiling.cast.row / self.chip.multiprocessors + size / rate
        return np.maximum(starts + time, least), busy, memory

    def _cast_rate(self, size: float) -> tuple[float, Origin]:
        """Return (B/s, source) of the kernel that casts `size` bytes."""
        cast, parts = self.tiling.cast, self.parts
        assert cast is not None
        rate, whose = math.inf if cast.rate is None else cast.rate * self.chip.multiprocessors, self._source("cast.rate")
        memory = parts.memory.bandwidth * (self.tiling.memory or parts.sustained.part(1.0, 0.0))
        if rate > memory and (cast.rate is None or parts.l2 is None or size > CACHED_OPERAND_SHARE * parts.l2.size):
            return memory, "memory bandwidth: " + source_of(self.sources, "memory.bandwidth")
        return rate, whose

    def _doubt(self, seconds: float) -> UncertaintySource | None:
        """Return the uncertainty that its lines share; None if nothing states how well its numbers are known."""
        source = source_of(self.sources, f"matmul.{self.key}.efficiency")
        case = case_of(source, guess="generation")
        if case is None:
            return None
        computed, _, variant = self.key.partition("-")
        topic = "weightonly" if variant.startswith("weights") else _TOPICS.get(computed, "product")
        is_skinny = min(self.product.m, self.product.n) <= SKINNY
        size = "tiny" if seconds < TINY else "skinny" if is_skinny else "big"
        chip = f"{precise(self.chip.peak, 'FLOP/s')}, {self.chip.multiprocessors} multiprocessors"
        share = precise(self.tiling.efficiency, "%")  # separately fitted GPUs of one size have independent errors
        return UncertaintySource(f"{topic}/{size}", case, f"{chip}, matmul.{self.key} of {share}", 0.0)

    def _start_terms(self) -> list[Term]:
        """Return the lines of the matmul's startup beyond the launch, and of the cast of its first operand."""
        terms = []
        path = f"matmul.{self.key}.start"
        if self.tiling.start > 0:
            terms.append(latency_term("start of the product", self.tiling.start, source_of(self.sources, path)))
        cast, product = self.tiling.cast, self.product
        if cast is not None and product.cast > 0:
            terms.append(self._cast_term())
        return terms

    def _cast_term(self) -> Term:
        cast, product = self.tiling.cast, self.product
        assert cast is not None
        rows, units = float(product.m) * product.batch, self.chip.multiprocessors
        size = rows * product.k * (product.cast + self.widths[0])
        rate, whose = self._cast_rate(size)
        seconds = cast.start + rows * cast.row / units + size / rate
        inputs = (
            ("start", precise(cast.start, "s"), self._source("cast.start")),
            ("rows", precise(rows, "1"), "of the first operand"),
            ("row", precise(cast.row, "s"), self._source("cast.row")),
            ("multiprocessors", str(units), "sms: " + source_of(self.sources, "sms")),
            ("bytes", precise(size, "B"), f"{product.cast:g} B read and {self.widths[0]:g} B written of each element"),
            ("rate", precise(rate, "B/s"), whose),
        )
        return Term("cast", "start + rows x row / multiprocessors + bytes / rate", inputs, seconds, kind="latency")

    def _source(self, key: str) -> Origin:
        path = f"matmul.{self.key}.{key}"
        return f"{path}: " + source_of(self.sources, path)

    def _tiles(self, cut: TilePlan) -> tuple[Input, ...]:
        product, parts = self.product, [f"{math.ceil(self.product.m / cut.rows)} x {math.ceil(self.product.n / cut.columns)}"]
        parts += [f"{cut.splits} pieces of k"] if cut.splits > 1 else []
        parts += [f"{product.batch} products"] if product.batch > 1 else []
        return (
            ("tiles", precise(cut.tiles, "1"), " x ".join(parts)),
            ("rows", precise(cut.rows, "1"), "of the fastest tile"),
            ("columns", precise(cut.columns, "1"), "of the fastest tile"),
            ("depth", precise(product.k / cut.splits, "1"), f"k / {cut.splits}" if cut.splits > 1 else "k"),
        )

    def _efficiency(self, *factors: tuple[float, str]) -> Input:
        """Return the product of all losses, and its factors, as an input of a derivation."""
        tiling, product = self.tiling, self.product
        aligned = tiling.alignment.keeps(product.n, product.k, self.widths[0])
        lost = [*factors, *([(aligned, " for unaligned rows")] if aligned < 1.0 else [])]
        reasons = f"{precise(tiling.efficiency, '%')} (" + self._source("efficiency") + ")"
        reasons += "".join(f" x {precise(part, '%')}{words}" for part, words in lost)
        return "efficiency", precise(math.prod([tiling.efficiency, *(part for part, _ in lost)]), "%"), reasons

    def _compute_term(self, cut: TilePlan, seconds: float) -> Term:
        relative = self.tiling.relative(cut.rows, cut.columns)
        inputs = (
            *self._tiles(cut),
            ("prologue", precise(self.tiling.prologue, "1"), self._source("prologue")),
            ("peak", precise(self.chip.peak, "FLOP/s"), self.peak_source),
            self._efficiency((relative, " for the tile size")),
        )
        formula = "tiles x 2 x rows x columns x (depth + prologue) / (peak x efficiency)"
        return Term("compute", formula, inputs, seconds, f"{self.name}.compute")

    def _load_term(self, cut: TilePlan, seconds: float) -> Term:
        """Return the line of small tiles, bound by operand loads: a tile of a x b loads a + b numbers for 2 a b FLOP."""
        tiles, _, _, depth = self._tiles(cut)
        product, (first, second) = self.product, self.widths
        loads = self._source("loads") + (f" x {self._source('transposed')!s}" if product.transposed else "")
        aligned = self.tiling.alignment.keeps(product.n, product.k, first)
        loads += f" x {precise(aligned, '%')} for unaligned rows" if aligned < 1.0 else ""
        step = min(product.m, cut.rows) * first + min(product.n, cut.columns) * second
        rows, columns = min(product.m, cut.rows), min(product.n, cut.columns)
        inputs = (
            tiles,
            ("step", precise(step, "B"), f"{rows} rows of {first:g} B and {columns} columns of {second:g} B for each of k"),
            depth,
            ("loads", precise(self.tiling.arriving(product) * aligned, "B/s"), loads),
            ("multiprocessors", str(self.chip.multiprocessors), "sms: " + source_of(self.sources, "sms")),
        )
        return Term("compute", "tiles x step x depth / (loads x multiprocessors)", inputs, seconds, f"{self.name}.compute")

    def _launch_term(self, least: float, before: float) -> Term:
        """Return the line of the host, which launches kernels one after another; a shorter kernel waits for the next launch."""
        inputs = (
            ("launch", precise(least, "s"), source_of(self.sources, "launch.stream")),
            ("starts", precise(before, "s"), "the lines above"),
        )
        return Term("launch", "launch - starts", inputs, least - before, kind="floor")

    def _wave_term(self, cut: TilePlan, memory: float) -> Term:
        """Return the line that sharing cannot lengthen: waves, rounded with the memory time, plus the sum over split-K pieces."""
        busy = cut.waves * cut.tile
        rounds = math.ceil(cut.tiles / self.chip.multiprocessors)
        inputs: list[Input] = [
            (
                "waves",
                precise(cut.waves, "1"),
                f"{cut.tiles} tiles on {self.chip.multiprocessors} SMs: {rounds} waves",
            ),
            ("tile", precise(cut.tile, "s"), f"one of {cut.rows} x {cut.columns}, on one SM"),
        ]
        formula = "waves x tile"
        if soft_max(busy, memory, ROUNDING) > busy:
            formula = f"((waves x tile)^{ROUNDING:g} + memory^{ROUNDING:g})^(1/{ROUNDING:g})"
            inputs.append(("memory", precise(memory, "s"), "each matrix once"))
        if cut.adding > 0:
            formula += " + adding"
            inputs.append(("adding", precise(cut.adding, "s"), f"the {cut.splits} pieces of k; " + self._source("adding")))
        bound = "compute" if busy >= memory else "memory"
        return Term(bound, formula, tuple(inputs), cut.time, f"{self.name}.{bound}")


def _with_doubt(doubt: UncertaintySource, term: Term) -> Term:
    doubts = (UncertaintySource(doubt.regime, doubt.case, doubt.key, term.seconds),)
    # three times faster than `replace`
    return Term(term.label, term.formula, term.inputs, term.seconds, term.capacity, term.kind, doubts, term.holder)
