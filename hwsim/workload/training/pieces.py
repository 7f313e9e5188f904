"""What a stage does for one micro-batch, cut into pieces between which gradients and weights are exchanged.

    forward    embedding, layers, logits and loss
    backward   gradients of the logits, then for each layer what is computed again and its gradients, then the embedding's

A piece is so many layers, not always a whole number, and what comes before or after all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hwsim.models import Item, Laid, Stage
from hwsim.records import dataclass

FORWARD_OUTPUT = frozenset({"final norm", "logits", "loss"})


@dataclass(frozen=True, slots=True)
class Piece:
    """Items, each group of them so many times."""

    groups: tuple[tuple[tuple[Item, ...], float], ...]

    def runs(self) -> Iterator[tuple[Item, ...]]:
        """The items one after another as they happen: whole layers apart, what is left of one as a part of each item."""
        for items, times in self.groups:
            for _ in range(int(times)):
                yield items
            if times % 1:
                yield tuple(_part(each, times % 1) for each in items)


def _part(item: Item, times: float) -> Item:
    return replace(item, times=item.times * times)


def pieces(stage: Stage, laid: Laid, chunk: int, *, forward: bool, count: int = 1) -> tuple[Piece, ...]:
    """One micro-batch through a chunk of a stage, in `count` pieces."""
    plan = laid.plan
    layers = laid.layers_of(stage.number) / plan.chunks / count
    first = stage.first if chunk == 0 else ()
    last = stage.last if chunk == plan.chunks - 1 else ()
    ahead = tuple(each for each in last if each.name in FORWARD_OUTPUT)
    back = tuple(each for each in last if each.name not in FORWARD_OUTPUT)
    if forward:
        before, each, behind = first[: len(first) // 2], stage.layer.forward, ahead
    else:
        before, each, behind = back, (*stage.layer.recompute, *stage.layer.backward), first[len(first) // 2 :]
    found = []
    for number in range(count):
        groups: list[tuple[tuple[Item, ...], float]] = []
        if number == 0 and before:
            groups.append((before, 1.0))
        groups.append((each, layers))
        if number == count - 1:
            groups += [(behind, 1.0)] if behind else []
            groups += [] if forward or not stage.adding else [(stage.adding, 1.0 / plan.chunks)]
        found.append(Piece(tuple(groups)))
    return tuple(found)
