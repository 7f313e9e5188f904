"""Names of the requests of the page: the process that answers each, and requests that newer ones supersede."""

from __future__ import annotations

from typing import Final

HAND: Final = frozenset({"run", "op", "picture"})  # requests about the visible run, answered by one process
REST: Final = frozenset({"animated", "curve", "effects", "exported", "file", "grid", "machine", "more", "saved", "sliders"})
NEWEST: Final = frozenset(
    {"run", "op", "more", "curve", "effects", "picture", "grid", "saved", "animated"}
)  # a newer request supersedes older ones
