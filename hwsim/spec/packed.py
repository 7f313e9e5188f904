"""Reader of JSON files, plain or gzip-compressed, with a limit on the uncompressed size."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any, Final

from hwsim.spec.mistakes import SpecError
from hwsim.spec.tree import unprintable

MOST_BYTES: Final = 500_000_000  # uncompressed; Python objects take ten times as much
_PACKED: Final = b"\x1f\x8b"
_PERHAPS: Final = re.compile(rb"\\u|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]|\0")  # escaped or in UTF-8


def read_json(path: Path, most: int = MOST_BYTES) -> Any:
    """Return the content of a file.

    Raises:
        SpecError: the file is not JSON, damaged, or larger than `most` bytes uncompressed.
        OSError: the file cannot be read.
    """
    try:
        with path.open("rb") as raw:
            packed = raw.read(len(_PACKED)) == _PACKED
            raw.seek(0)
            data: bytes = (gzip.GzipFile(fileobj=raw) if packed else raw).read(most + 1)
        if len(data) > most:
            raise SpecError.of(None, f"{path}: larger than {most // 1_000_000:,} MB" + (" uncompressed" if packed else ""))
        content = json.loads(data)
        if (bad := commanding(data, content)) is not None:
            message = f"{path}: the control character U+{ord(bad):04X} does not belong in a text"
            raise SpecError.of(None, message)
        return content
    except SpecError:
        raise
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError) as error:
        raise SpecError.of(None, f"{path}: invalid JSON: {error}") from None


def commanding(data: bytes, content: Any) -> str | None:
    """Return the first terminal control character in the texts of a JSON document; None if there is none.

    Args:
        data: the document, for a fast check.
        content: its decoded value.
    """
    waiting = [content] if _PERHAPS.search(data) else []
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and (bad := unprintable(value)) is not None:
            return bad
        waiting += [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return None


__all__ = ["commanding", "read_json"]
