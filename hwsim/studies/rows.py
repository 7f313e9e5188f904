"""Files of rows: CSV and JSON lines, by the end of the name; written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hwsim.spec import SpecError
from hwsim.studies.table import Sweep
from hwsim.views.kit.writing import write


def write_rows(study: Sweep, path: str | Path) -> Path:
    """Write the rows of a study in the order of its points.

    Raises:
        SpecError: another ending.
        OSError: it cannot be written; the file is as it was.
    """
    write(path, _WRITERS[Path(path).suffix](study))
    return Path(path)


def refuse_missing(path: str | Path) -> None:
    """Raise before the work is done if rows could not be written in this form after it.

    Raises:
        SpecError: another ending.
    """
    if Path(path).suffix not in SUFFIXES:
        raise SpecError.of(None, f"rows are written as {', '.join(SUFFIXES)}, not as '{Path(path).name}'")


def _csv(study: Sweep) -> Iterator[bytes]:
    yield study.to_csv().encode()


def _jsonl(study: Sweep) -> Iterator[bytes]:
    for row in study.documents():
        yield json.dumps(_finite(row), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _finite(value: Any) -> Any:
    """The value with null for what is no number in JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


_WRITERS: Final[Mapping[str, Callable[[Sweep], Iterator[bytes]]]] = {".csv": _csv, ".jsonl": _jsonl}
SUFFIXES: Final = tuple(_WRITERS)
