"""Files of rows: CSV, JSON lines and Parquet, by the end of the name; written whole or not at all."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hwsim.spec import SpecError
from hwsim.studies.point import Row
from hwsim.studies.table import Sweep
from hwsim.views.kit.writing import write


def write_rows(study: Sweep, path: str | Path) -> Path:
    """Write the rows of a study in the order of its points.

    Raises:
        SpecError: another ending, or Parquet without pyarrow.
        OSError: it cannot be written; the file is as it was.
    """
    write(path, _WRITERS[Path(path).suffix](study))
    return Path(path)


def refuse_missing(path: str | Path) -> None:
    """Raise before the work is done if rows could not be written in this form after it.

    Raises:
        SpecError: another ending, or Parquet without pyarrow.
    """
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise SpecError.of(None, f"rows are written as {', '.join(SUFFIXES)}, not as '{Path(path).name}'")
    if suffix == ".parquet":
        _arrow()


def _csv(study: Sweep) -> Iterator[bytes]:
    yield study.to_csv().encode()


def _jsonl(study: Sweep) -> Iterator[bytes]:
    for row in study.documents():
        yield json.dumps(_finite(row), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _parquet(study: Sweep) -> Iterator[bytes]:
    arrow, parquet = _arrow()
    table = arrow.table({name: arrow.array(values, _kind(arrow, name, values)) for name, values in _columns(study, study.rows)})
    sink = arrow.BufferOutputStream()
    parquet.write_table(table, sink)
    yield sink.getvalue().to_pybytes()


def _columns(study: Sweep, rows: Sequence[Row]) -> Iterator[tuple[str, list[Any]]]:
    """Name and values of each column, as in CSV."""
    for place, column in enumerate(study.varied):
        yield column.heading, [column.cell(row.values[place]) for row in rows]
    for name in study.measured:
        yield name, [dict(row.measures).get(name) for row in rows]
    yield "makespan_s", [row.makespan_s for row in rows]
    yield "low_s", [None if row.interval is None else row.interval.low for row in rows]
    yield "high_s", [None if row.interval is None else row.interval.high for row in rows]
    yield "limited_by", [row.limited_by for row in rows]
    yield "share", [row.share for row in rows]
    yield "warnings", [" | ".join(map(str, row.warnings)) for row in rows]
    yield "error", [row.error for row in rows]
    yield "fingerprint", [row.fingerprint for row in rows]


def _kind(arrow: Any, name: str, values: list[Any]) -> Any:
    if name in ("limited_by", "warnings", "error", "fingerprint") or any(isinstance(value, str) for value in values):
        return arrow.string()
    return arrow.int64() if values and all(isinstance(value, int) for value in values) else arrow.float64()


def _arrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise SpecError.of(None, "Parquet needs pyarrow", "pip install 'hwsim[tables]', or write rows.csv") from None


def _finite(value: Any) -> Any:
    """The value with null for what is no number in JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


_WRITERS: Final[Mapping[str, Callable[[Sweep], Iterator[bytes]]]] = {".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}
SUFFIXES: Final = tuple(_WRITERS)
