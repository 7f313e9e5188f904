"""The cost of a tiled matrix product on one GPU, and the derivation that goes with it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hwsim.demand import Term, soft_max
from hwsim.devices.gpu_matmul import ROUNDING, Chip, Cut, Tiling, best
from hwsim.devices.roofline import Draw, Input, latency_terms, source_of
from hwsim.devices.work import Product, Work
from hwsim.formats import precise
from hwsim.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiled:
    """A product with everything that its time depends on.

    Args:
        name: full name of the GPU.
        key: the number format whose tiles are used, a key of `matmul`.
        peak: FLOP/s, and in words where it is from.
        memory: seconds in which every matrix crosses to memory once.
    """

    name: str
    work: Work
    product: Product
    key: str
    tiling: Tiling
    chip: Chip
    peak_source: str
    memory: float
    sources: Mapping[str, str]

    def cut(self) -> Cut:
        """The way the library is taken to cut it."""
        return best(self.product, self.width, self.tiling, self.chip, self.memory)

    @property
    def width(self) -> float:
        """Bytes of an element of the factors."""
        product = self.product
        if product.element > 0:
            return product.element
        return self.work.reads / (product.batch * product.k * (product.m + product.n))

    def draws(self) -> tuple[tuple[Draw, ...], float, list[Term]]:
        """Draws of the multiprocessors, with a line for what it cannot beat alone; that time; and its start."""
        cut = self.cut()
        capacity = f"{self.name}.compute"
        seconds = cut.tiles * cut.tile / self.chip.multiprocessors
        why = self._computing(cut, seconds) if cut.computing >= cut.loading else self._loading(cut, seconds)
        return (
            (
                Draw(capacity, seconds, 1.0, self.work.flop, "FLOP", why),
                Draw(capacity, 0.0, 1.0, 0.0, "FLOP", self._alone(cut)),
            ),
            cut.time,
            latency_terms(self.sources, (f"matmul.{self.key}.start", "start of the product", self.tiling.start, "")),
        )

    def _said(self, key: str) -> str:
        path = f"matmul.{self.key}.{key}"
        return f"{path}: {source_of(self.sources, path)}"

    def _tiles(self, cut: Cut) -> tuple[Input, ...]:
        product, parts = self.product, [f"{math.ceil(self.product.m / cut.rows)} x {math.ceil(self.product.n / cut.columns)}"]
        parts += [f"{cut.splits} pieces of k"] if cut.splits > 1 else []
        parts += [f"{product.batch} products"] if product.batch > 1 else []
        return (
            ("tiles", precise(cut.tiles, "1"), " x ".join(parts)),
            ("rows", precise(cut.rows, "1"), "of the tile that takes least"),
            ("columns", precise(cut.columns, "1"), "of the tile that takes least"),
            ("depth", precise(product.k / cut.splits, "1"), f"k / {cut.splits}" if cut.splits > 1 else "k"),
        )

    def _efficiency(self, *more: tuple[float, str]) -> Input:
        """The product of what is lost one after another, and of what it is made."""
        tiling, product = self.tiling, self.product
        aligned = tiling.alignment.keeps(product.n, product.k, self.width)
        parts = [(tiling.efficiency, f" ({self._said('efficiency')})"), *more]
        parts += [(aligned, " for rows at odd addresses")] if aligned < 1.0 else []
        reasons = " x ".join(precise(part, "%") + words for part, words in parts)
        return "efficiency", precise(math.prod(part for part, _ in parts), "%"), reasons

    def _computing(self, cut: Cut, seconds: float) -> Term:
        relative = self.tiling.relative(cut.rows, cut.columns)
        inputs = (
            *self._tiles(cut),
            ("prologue", precise(self.tiling.prologue, "1"), self._said("prologue")),
            ("peak", precise(self.chip.peak, "FLOP/s"), self.peak_source),
            self._efficiency((relative, " for the tile's size")),
        )
        formula = "tiles x 2 x rows x columns x (depth + prologue) / (peak x efficiency)"
        return Term("compute", formula, inputs, seconds, f"{self.name}.compute")

    def _loading(self, cut: Cut, seconds: float) -> Term:
        """Small tiles wait for their operands: a tile of sides a, b computes 2 a b with a + b of them."""
        tiles, _, _, depth = self._tiles(cut)
        balance = self._said("balance") + (f" / {self._said('transposed')}" if self.product.transposed else "")
        inputs = (
            tiles,
            ("rows", precise(min(self.product.m, cut.rows), "1"), f"of the {cut.rows} of a tile"),
            ("columns", precise(min(self.product.n, cut.columns), "1"), f"of the {cut.columns} of a tile"),
            depth,
            ("balance", precise(self.tiling.side(self.product), "1"), balance),
            ("peak", precise(self.chip.peak, "FLOP/s"), self.peak_source),
            self._efficiency(),
        )
        formula = "tiles x balance x (rows + columns) x depth / (peak x efficiency)"
        return Term("compute", formula, inputs, seconds, f"{self.name}.compute")

    def _alone(self, cut: Cut) -> Term:
        """The line that no sharing makes longer: waves, rounded with the time of memory; splits are added up afterwards."""
        busy = cut.waves * cut.tile
        rounds = math.ceil(cut.tiles / self.chip.multiprocessors)
        inputs: list[Input] = [
            (
                "waves",
                precise(cut.waves, "1"),
                f"{cut.tiles} tiles on {self.chip.multiprocessors} multiprocessors: {rounds} rounds",
            ),
            ("tile", precise(cut.tile, "s"), f"one of {cut.rows} x {cut.columns}, on one multiprocessor"),
        ]
        formula = "waves x tile"
        if soft_max(busy, self.memory, ROUNDING) > busy:
            formula = f"((waves x tile)^{ROUNDING:g} + memory^{ROUNDING:g})^(1/{ROUNDING:g})"
            inputs.append(("memory", precise(self.memory, "s"), "every matrix once"))
        if cut.adding > 0:
            formula += " + adding"
            inputs.append(("adding", precise(cut.adding, "s"), f"the {cut.splits} pieces of k; {self._said('adding')}"))
        bound = "compute" if busy >= self.memory else "memory"
        return Term(bound, formula, tuple(inputs), cut.time, f"{self.name}.{bound}")
