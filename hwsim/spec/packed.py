"""JSON of a file, packed by gzip or not, with a limit on what it unpacks to."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, Final

from hwsim.spec.mistakes import Mistake, SpecError

MOST_BYTES: Final = 500_000_000  # unpacked; objects of Python take ten times that
_PACKED: Final = b"\x1f\x8b"


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """The content of a file.

    Raises:
        SpecError: it is no JSON, damaged, or larger than `most` bytes.
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(_PACKED)) == _PACKED
            raw.seek(0)
            data: bytes = (gzip.GzipFile(fileobj=raw) if packed else raw).read(most + 1)
        if len(data) > most:
            raise SpecError([Mistake(None, f"{path}: more than {most // 1_000_000:,} MB" + (", unpacked" if packed else ""))])
        return json.loads(data)
    except SpecError:
        raise
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError) as error:
        raise SpecError([Mistake(None, f"{path}: no JSON: {error}")]) from None


__all__ = ["read_json"]
