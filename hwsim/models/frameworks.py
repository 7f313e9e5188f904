"""What the software of a training adds to the kernels: how much it fuses, how its attention runs, what it overlaps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

from hwsim.devices.work import Start
from hwsim.models.architectures.transformer_layers import Attention
from hwsim.records import dataclass
from hwsim.spec import Mistakes, decode, find, read, resolve
from hwsim.spec.fields import field
from hwsim.units import Ratio, Seconds

_ENTRY: Final = frozenset({"hwsim", "kind", "name", "notes", "use", "let"})


@dataclass(frozen=True, slots=True)
class Style:
    """How a framework does the kernels of one kind: norm, rotary, activation, residual, embedding, softmax, attention."""

    kernels: int = field("it is cut into, one after another", default=1, minimum=1)
    moved: float = field("bytes they move, over those of a fused one", default=1.0, exclusive_minimum=0.0)
    flop: float = field("operations for each element of the result, conversions and addresses included", default=0.0)
    start: Seconds = field("of each kernel beyond the GPU's own", default=0.0)
    walk: Seconds = field("of each kernel for every 1024 elements of a row, along which one block of threads walks", default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """The constants of a training framework; by default everything is fused that can be, and collectives are waited for."""

    kind: ClassVar[str] = "framework"

    attention: Attention = field("scores in memory (plain), or on the chip (flash)", default="flash")
    moved: float = field("bytes that elementwise kernels move, over those of fused ones", default=1.0, exclusive_minimum=0.0)
    scores: float = field(
        "bytes that plain attention moves, over those of fused masks and softmax", default=1.0, exclusive_minimum=0.0
    )
    exposed: Ratio = field("part of tensor-parallel collectives that nothing hides", default=1.0, maximum=1.0)
    gradients: Ratio = field(
        "part of the collectives of gradients and sharded weights that nothing hides", default=1.0, maximum=1.0
    )
    gathered: int = field("times sharded weights are gathered for a micro-batch: forward, backward", default=2, minimum=1)
    gradient: float = field("bytes of a gradient that is sent", default=2.0, exclusive_minimum=0.0)
    adam: float = field("bytes moved for each parameter that the optimizer updates", default=30.0, exclusive_minimum=0.0)
    accumulate: float = field("bytes moved for each parameter to add a micro-batch's gradients; 0: the products do", default=0.0)
    flash: float = field("speed of its flash attention, over that of the generation's", default=1.0, exclusive_minimum=0.0)
    network: Ratio = field(
        "of the cards' rate that its collectives reach, over that of others", default=1.0, exclusive_minimum=0.0
    )
    split: bool = field("of a tensor-parallel group each GPU sends its part to the next stage, not all of it", default=True)
    repeated: Ratio = field("part of the products that selective recompute repeats", default=0.0, maximum=1.0)
    fp8: Ratio = field(
        "of their speed that 8-bit products keep: largest values are looked for, numbers converted",
        default=0.8,
        exclusive_minimum=0.0,
    )
    ops: Mapping[str, Style] = field(
        "of single kernels (norm, rotary, activation, residual, embedding, softmax), where they differ", default_factory=dict
    )
    cached: bool = field("activations are small enough to pass from one kernel to the next through the L2", default=False)
    steady: bool = field("runs for hours, at the power limit and with other data in the cache (a training)", default=True)
    starts: Start = field(
        "who starts its kernels: the one before in the stream, a graph, or the host, which waits", default="stream"
    )
    launch: Seconds = field("least time from one kernel to the next: what the host takes to issue one", default=0.0)
    step: Seconds = field("of each step that is no kernel", default=0.0)
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    def problems(self) -> Iterator[tuple[str, str, str | None]]:
        """(key, message, hint) of what cannot be: nothing beyond the bounds of its fields."""
        yield from ()


def load_framework(name: str, relative_to: Path | None = None) -> Framework:
    """The framework of the library called that, or of a file.

    Raises:
        SpecError: there is no such file, or it has mistakes.
    """
    mistakes = Mistakes()
    tree = resolve(read(find("framework", name, relative_to)), mistakes, kind="framework")
    mistakes.raise_if_any()
    found = decode(tree, Framework, mistakes, ignore=_ENTRY, sourced=True)
    mistakes.raise_if_any()
    if found is None:
        raise TypeError("no framework was read, and no mistake noted")
    return found
