"""The questions of the page by name: which process answers them, and which matter only until a newer one comes."""

from __future__ import annotations

from typing import Final

HAND: Final = frozenset({"run", "op", "picture"})  # answered by one process: they are of the run that is seen
REST: Final = frozenset({"animated", "curve", "exported", "file", "grid", "machine", "more", "sliders"})
NEWEST: Final = frozenset({"run", "op", "more", "curve", "picture", "grid", "animated"})  # the newest alone matters
