"""How long ago memory was used, in bytes: what was gone over since, each byte once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


def span(array: NDArray[Any]) -> tuple[int, int]:
    """Where an array begins and how many bytes it goes through; gaps between its rows are not counted.

    >>> a = np.zeros(100)
    >>> span(a)[1], span(a[::2])[1]
    (800, 400)
    """
    low = np.lib.array_utils.byte_bounds(array)[0] if hasattr(np.lib, "array_utils") else int(array.ctypes.data)
    return int(low), int(array.size * array.itemsize)


@dataclass(slots=True)
class Recency:
    """Pieces of memory, the last used last."""

    pieces: list[tuple[int, int]] = field(default_factory=list)  # begin, bytes

    def touch(self, begin: int, size: int) -> float:
        """Bytes gone over since this memory was last used, its own included; all that are known if it never was.

        >>> recent = Recency()
        >>> recent.touch(0, 100), recent.touch(1000, 50), recent.touch(0, 100), recent.touch(0, 100)
        (100.0, 150.0, 150.0, 100.0)
        """
        end, gone = begin + size, 0
        kept: list[tuple[int, int]] = []
        found = False
        for start, length in reversed(self.pieces):
            shared = min(end, start + length) - max(begin, start)
            if shared <= 0:
                if not found:
                    gone += length
                kept.append((start, length))
                continue
            found = found or 2 * shared >= min(size, length)
            if start < begin:
                kept.append((start, begin - start))
            if start + length > end:
                kept.append((end, start + length - end))
        self.pieces = kept[::-1][-4000:]
        self.pieces.append((begin, size))
        return float(gone + size)
