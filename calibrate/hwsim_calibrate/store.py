"""Files of measurements: the machine, the cases with all their samples, and the disturbances.

    {"hwsim": "measurements/1", "environment": {...}, "settings": {...}, "skipped": {"gpu": "no CUDA device"},

     "rows": [{"suite": "kernels", "case": "add n=1024 dtype=fp32 into=new", "op": "add",
               "params": {"n": 1024, "dtype": "fp32", "into": "new"},
               "work": {"flop": 1024, "reads": 8192, "writes": 4096, "calls": 1},

               "seconds": [3.1e-07, 3.0e-07, 3.2e-07], "clock": "cpu", "flags": [],
               "samples": [[3.1e-07, 3.3e-07], ...], "faults": [0, 0, 0]}]}.

`seconds` has the undisturbed time of one call in each round, `samples` all times of each round, and `faults` the page faults per
call. The file is JSON, compressed with gzip if its name ends in .gz, and written atomically. For the keys of `params`, see
calibrate/hwsim_calibrate/suites/__init__.py.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from hwsim.spec import Mistakes, Place, SpecError, did_you_mean

FORMAT: Final = "measurements/1"
Clock = Literal["cpu", "wall", "device"]  # CPU time of the thread; wall time; time between two GPU events
CLOCKS: Final[tuple[str, ...]] = get_args(Clock)
Param = str | int | float | bool | None | tuple[int, ...]
_DATA: Final = Path(__file__).parent / "data"
_STORED: Final = ".json.gz"
_QUANTILE_FROM: Final = 10  # rounds from which the 10 % quantile replaces the minimum


def quiet(seconds: Iterable[float]) -> float:
    """Return the undisturbed time of a call (s): the minimum of the rounds, or their 10 % quantile from ten rounds.

    >>> quiet((3.0, 2.0, 9.0))
    2.0
    """
    ordered = sorted(seconds)
    return ordered[0] if len(ordered) < _QUANTILE_FROM else ordered[len(ordered) // 10]


@dataclass(frozen=True, slots=True)
class Amounts:
    """The work of one call: operations, bytes that the program reads and writes, and library calls."""

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    calls: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """A measured case.

    Args:
        suite: name of the suite.
        case: name of the case, unique within the suite.
        op: the function or operation.
        params: see `suites`.
        work: operations and bytes of one call.
        seconds: time of one call in each round (s).
        clock: the clock that counts.
        flags: names in `flags.FLAGS`.
        samples: all times of each round (s).
        faults: page faults per call in each round.
    """

    suite: str
    case: str
    op: str
    params: Mapping[str, Param]
    work: Amounts
    seconds: tuple[float, ...]
    clock: Clock = "cpu"
    flags: tuple[str, ...] = ()
    samples: tuple[tuple[float, ...], ...] = ()
    faults: tuple[float, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Suite and name of the case, which identify it."""
        return self.suite, self.case

    @property
    def quiet(self) -> float:
        """The undisturbed time of a call (s)."""
        return quiet(self.seconds)

    @property
    def spread(self) -> float:
        """The median round over the undisturbed time, minus 1."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) // 2] / self.quiet - 1.0


@dataclass(frozen=True, slots=True)
class Measurements:
    """The content of a file of measurements.

    Args:
        environment: see `environment.fingerprint`.
        rows: the measured cases.
        settings: seed, budget and suites. A later run with other cases adds its date and load, and moves older settings to
            `before`.
        skipped: suite or suite/op -> why it was not measured.
    """

    environment: Mapping[str, Any]
    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def of(self, suite: str = "", op: str = "") -> Iterator[Row]:
        """Return the rows of a suite, of an op, or of both."""
        return (row for row in self.rows if suite in ("", row.suite) and op in ("", row.op))

    def with_rows(self, rows: Iterable[Row]) -> Measurements:
        """Return the measurements with these rows. They replace rows of the same cases; new cases are appended."""
        by_key = {row.key: row for row in self.rows} | {row.key: row for row in rows}
        return replace(self, rows=tuple(by_key.values()))

    def save(self, path: str | Path) -> Path:
        """Write the file atomically.

        Raises:
            OSError: The folder does not exist or is not writable, or the disk is full.
        """
        from hwsim.views.kit.file_output import write

        data = json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        raw = data.replace('{"suite"', '\n{"suite"').encode() + b"\n"
        return write(path, [gzip.compress(raw, 6, mtime=0) if str(path).endswith(".gz") else raw])

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {
            "hwsim": FORMAT,
            "environment": dict(self.environment),
            "settings": dict(self.settings),
            "skipped": dict(self.skipped),
            "rows": [_row_to_json(row) for row in self.rows],
        }


def stored() -> dict[str, Path]:
    """Return the paths of the measurements that are bundled with hwsim, by name."""
    return {path.name.removesuffix(_STORED): path for path in sorted(_DATA.glob(f"*{_STORED}"))}


def find_measurements(source: str | Path) -> Path:
    """Return the path of a file, or of bundled measurements by their name.

    Raises:
        SpecError: There is neither a file nor bundled measurements of that name.
    """
    names, path = stored(), Path(source)
    if path.is_file():
        return path
    if str(source) in names:
        return names[str(source)]
    hint = did_you_mean(str(source), names)
    raise SpecError.of(None, f"'{source}' is neither a file nor the name of bundled measurements", hint)


def load(source: str | Path) -> Measurements:
    """Read a file of measurements, by path or by name.

    Raises:
        SpecError: The file is not a file of measurements, or has invalid rows.
        OSError: The file cannot be read.
    """
    path = find_measurements(source)
    raw, mistakes = path.read_bytes(), Mistakes()
    try:
        data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise _wrong(path, f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except (EOFError, OSError, UnicodeDecodeError, ValueError, zlib.error) as error:
        raise _wrong(path, f"it cannot be read as JSON ({error})") from None
    if not isinstance(data, dict) or data.get("hwsim") != FORMAT:
        raise _wrong(path, f'it is not a file of measurements: expected "hwsim": "{FORMAT}" at the start')
    measurements = from_json(data, Place(str(path), 0, 0), mistakes)
    mistakes.raise_if_any()
    return measurements


def from_json(data: Mapping[str, Any], place: Place, mistakes: Mistakes) -> Measurements:
    """Return the content of a file. Invalid rows are added to `mistakes` and omitted."""
    rows: dict[tuple[str, str], Row] = {}
    entries = data.get("rows", [])
    if not isinstance(entries, list):
        mistakes.add(place, "`rows` is not a list")
        entries = []
    for index, entry in enumerate(entries):
        try:
            row = _row_from_json(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            mistakes.add(place, f"rows[{index}]: {message}", "expected a row that `hwsim calibrate measure` wrote")
            continue
        if row.key in rows:
            mistakes.add(place, f"rows[{index}]: the case '{row.case}' of the suite '{row.suite}' occurs twice")
        rows[row.key] = row
    parts = [data.get(key, {}) for key in ("environment", "settings", "skipped")]
    for key, part in zip(("environment", "settings", "skipped"), parts, strict=True):
        if not isinstance(part, dict):
            mistakes.add(place, f"`{key}` is not a mapping")
    return Measurements(parts[0], tuple(rows.values()), parts[1], parts[2])


def _row_to_json(row: Row) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "suite": row.suite, "case": row.case, "op": row.op, "params": dict(row.params), "work": asdict(row.work),
        "seconds": [_short(time) for time in row.seconds], "clock": row.clock, "flags": list(row.flags),
    }  # fmt: skip
    if row.samples:
        entry["samples"] = [[_short(sample) for sample in samples] for samples in row.samples]
    if any(row.faults):
        entry["faults"] = [_short(fault) for fault in row.faults]
    return entry


def _row_from_json(entry: Mapping[str, Any]) -> Row:
    seconds = _numbers(entry["seconds"], "seconds")
    if not seconds or min(seconds) <= 0:
        raise ValueError("`seconds`: expected a list of positive times, one per round")
    if entry["clock"] not in CLOCKS:
        raise ValueError(f"`clock`: expected {', '.join(CLOCKS)}, got '{entry['clock']}'")
    params = {str(key): tuple(value) if isinstance(value, list) else value for key, value in entry["params"].items()}
    samples = tuple(_numbers(times, "samples") for times in entry.get("samples", ()))
    faults = _numbers(entry.get("faults", [0.0] * len(seconds)), "faults")
    if len(faults) != len(seconds) or (samples and len(samples) != len(seconds)):
        raise ValueError("`samples` and `faults`: expected one entry per entry of `seconds`")
    work = Amounts(**{key: _number(value, f"work.{key}") for key, value in entry["work"].items()})
    flags = tuple(str(flag) for flag in entry.get("flags", ()))
    names = [entry[key] for key in ("suite", "case", "op")]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError("`suite`, `case` and `op`: expected names")
    suite, case, op = names
    return Row(suite, case, op, params, work, seconds, entry["clock"], flags, samples, faults)


def _numbers(values: Iterable[Any], name: str) -> tuple[float, ...]:
    return tuple(_number(value, name) for value in values)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"`{name}`: expected a number of at least 0, got '{value}'")
    return float(value)


def _short(seconds: float) -> float:
    """Round to five digits, the precision of the clocks."""
    return float(f"{seconds:.5g}")


def _refuse(word: str) -> float:
    raise ValueError(f"'{word}' is not a number")


def _wrong(path: str | Path, message: str, line: int = 0, column: int = 0) -> SpecError:
    return SpecError.of(Place(str(path), line, column), message, "expected a file that `hwsim calibrate measure` wrote")
