"""`router:` how the copy is chosen that a request goes to.

router: round robin
router: {prefix: 2, queue: 1, room: 1}      the copy with the highest score, as the scheduler of llm-d weighs it
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hwsim.records import dataclass
from hwsim.spec import Place, Problem, field, place_field

Routing = Literal["least", "waiting", "round robin"]


@dataclass(frozen=True, slots=True)
class ScoreKeys:
    """Weights of a score; each part of it is 1 for the best copy and 0 for the worst."""

    prefix: float = field("tokens of the prompt that its cache has", default=2.0, minimum=0.0)
    queue: float = field("requests that wait there, the fewer the better", default=1.0, minimum=0.0)
    room: float = field("part of its KV cache that is free", default=1.0, minimum=0.0)
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        if not (self.prefix or self.queue or self.room):
            yield "", "all copies score the same", "{prefix: 2, queue: 1, room: 1}"
