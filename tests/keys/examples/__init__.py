"""Examples in which every key of every schema does something, by area."""

from __future__ import annotations

from typing import Final

from tests.keys.examples import (
    collectives,
    costs,
    cpus,
    frameworks,
    gpus,
    memories,
    networks,
    programs,
    services,
    serving,
    storage,
    training,
)
from tests.keys.feeling import Example

EXAMPLES: Final[tuple[Example, ...]] = (
    *cpus.EXAMPLES,
    *gpus.EXAMPLES,
    *memories.EXAMPLES,
    *storage.EXAMPLES,
    *networks.EXAMPLES,
    *collectives.EXAMPLES,
    *programs.EXAMPLES,
    *frameworks.EXAMPLES,
    *training.EXAMPLES,
    *services.EXAMPLES,
    *serving.EXAMPLES,
    *costs.EXAMPLES,
)
