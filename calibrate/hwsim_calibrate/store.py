"""Measurements as a file: what was measured, on what, how often, and what disturbed it.

    {"hwsim": "measurements/1", "environment": {...}, "settings": {...}, "skipped": {"gpu": "no CUDA device"},

     "rows": [{"suite": "kernels", "case": "add n=1024 dtype=fp32 into=new", "op": "add",
               "params": {"n": 1024, "dtype": "fp32", "into": "new"},
               "work": {"flop": 1024, "reads": 8192, "writes": 4096, "calls": 1},

               "seconds": [3.1e-07, 3.0e-07, 3.2e-07], "clock": "cpu", "flags": [],
               "samples": [[3.1e-07, 3.3e-07], ...], "faults": [0, 0, 0]}]}.

`seconds` holds one number per round, the quiet estimate of that round for one call. `samples` holds all times of each round, and
`faults` the pages that each call touched for the first time. It is JSON, packed by gzip if the name ends in .gz, written as a
whole or not at all. The words of `params` are in calibrate/hwsim_calibrate/suites/__init__.py.
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
Clock = Literal["cpu", "wall", "device"]  # CPU time of one thread; wall time; time of a GPU between two of its events
CLOCKS: Final[tuple[str, ...]] = get_args(Clock)
Param = str | int | float | bool | None | tuple[int, ...]
_DATA: Final = Path(__file__).parent / "data"
_STORED: Final = ".json.gz"
_MANY: Final = 10  # rounds from which on the lowest tenth counts, not the lowest


def quiet(seconds: Iterable[float]) -> float:
    """Seconds of a call on the undisturbed machine: the lowest round, from ten rounds on the lowest tenth.

    >>> quiet((3.0, 2.0, 9.0))
    2.0
    """
    ordered = sorted(seconds)
    return ordered[0] if len(ordered) < _MANY else ordered[len(ordered) // 10]


@dataclass(frozen=True, slots=True)
class Amounts:
    """Work of one call: operations, bytes that the program reads and writes, and calls of the library."""

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    calls: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a suite.

    Args:
        seconds: seconds of one call, per round.
        samples: all times, per round.
        faults: pages touched for the first time per call, per round.
        flags: what makes it doubtful, in words of `flags.FLAGS`.
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
        """The identity of the case: names are unique within a suite."""
        return self.suite, self.case

    @property
    def quiet(self) -> float:
        """Seconds of a call on the undisturbed machine."""
        return quiet(self.seconds)

    @property
    def spread(self) -> float:
        """Relative difference of the median round and the quiet time: 0.05 for 5 %."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) // 2] / self.quiet - 1.0


@dataclass(frozen=True, slots=True)
class Measurements:
    """The content of a file.

    Args:
        environment: see `environment.fingerprint`.
        settings: seed, budget, suites; of a run that joined the file also its date and load, and the settings of those `before`.
        skipped: suite -> why it was not measured.
    """

    environment: Mapping[str, Any]
    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def of(self, suite: str = "", op: str = "") -> Iterator[Row]:
        """The rows of a suite, of an op, or of both."""
        return (row for row in self.rows if suite in ("", row.suite) and op in ("", row.op))

    def with_rows(self, rows: Iterable[Row]) -> Measurements:
        """With these rows replacing rows of the same cases; new cases come last."""
        by_key = {row.key: row for row in self.rows} | {row.key: row for row in rows}
        return replace(self, rows=tuple(by_key.values()))

    def save(self, path: str | Path) -> Path:
        """Write the file as a whole or not at all.

        Raises:
            OSError: the folder does not exist, is full, or may not be written to.
        """
        from hwsim.views.kit.file_output import write

        data = json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        raw = data.replace('{"suite"', '\n{"suite"').encode() + b"\n"
        return write(path, [gzip.compress(raw, 6, mtime=0) if str(path).endswith(".gz") else raw])

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "hwsim": FORMAT,
            "environment": dict(self.environment),
            "settings": dict(self.settings),
            "skipped": dict(self.skipped),
            "rows": [_row_to_json(row) for row in self.rows],
        }


def stored() -> dict[str, Path]:
    """The measurements that come with hwsim, by name."""
    return {path.name.removesuffix(_STORED): path for path in sorted(_DATA.glob(f"*{_STORED}"))}


def located(source: str | Path) -> Path:
    """A file, or measurements that come with hwsim, by name.

    Raises:
        SpecError: neither.
    """
    names, path = stored(), Path(source)
    if path.is_file():
        return path
    if str(source) in names:
        return names[str(source)]
    hint = did_you_mean(str(source), names)
    raise SpecError.of(None, f"there is no file '{source}', nor measurements of that name", hint)


def load(source: str | Path) -> Measurements:
    """Read a file of measurements, by path or by name.

    Raises:
        SpecError: it is no file of measurements, or a row is wrong.
        OSError: it cannot be read.
    """
    path = located(source)
    raw, mistakes = path.read_bytes(), Mistakes()
    try:
        data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise _wrong(path, f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except (EOFError, OSError, UnicodeDecodeError, ValueError, zlib.error) as error:
        raise _wrong(path, f"it cannot be read as JSON ({error})") from None
    if not isinstance(data, dict) or data.get("hwsim") != FORMAT:
        raise _wrong(path, f'no file of measurements: it does not begin with "hwsim": "{FORMAT}"')
    measurements = of_json(data, Place(str(path), 0, 0), mistakes)
    mistakes.raise_if_any()
    return measurements


def of_json(data: Mapping[str, Any], place: Place, mistakes: Mistakes) -> Measurements:
    """The content of a file; wrong rows are noted as mistakes and left out."""
    rows: dict[tuple[str, str], Row] = {}
    entries = data.get("rows", [])
    if not isinstance(entries, list):
        mistakes.add(place, "`rows` is no list")
        entries = []
    for number, entry in enumerate(entries):
        try:
            row = _row_of_json(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            mistakes.add(place, f"rows[{number}]: {message}", "a row is as `hwsim calibrate measure` writes it")
            continue
        if row.key in rows:
            mistakes.add(place, f"rows[{number}]: '{row.case}' of suite '{row.suite}' is there twice")
        rows[row.key] = row
    parts = [data.get(key, {}) for key in ("environment", "settings", "skipped")]
    for key, part in zip(("environment", "settings", "skipped"), parts, strict=True):
        if not isinstance(part, dict):
            mistakes.add(place, f"`{key}` is no mapping")
    return Measurements(parts[0], tuple(rows.values()), parts[1], parts[2])


def _row_to_json(row: Row) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "suite": row.suite, "case": row.case, "op": row.op, "params": dict(row.params), "work": asdict(row.work),
        "seconds": [_short(each) for each in row.seconds], "clock": row.clock, "flags": list(row.flags),
    }  # fmt: skip
    if row.samples:
        entry["samples"] = [[_short(sample) for sample in samples] for samples in row.samples]
    if any(row.faults):
        entry["faults"] = [_short(fault) for fault in row.faults]
    return entry


def _row_of_json(entry: Mapping[str, Any]) -> Row:
    seconds = _numbers(entry["seconds"], "seconds")
    if not seconds or min(seconds) <= 0:
        raise ValueError("`seconds` is a list of times above 0, one per round")
    if entry["clock"] not in CLOCKS:
        raise ValueError(f"`clock` is one of {', '.join(CLOCKS)}, not '{entry['clock']}'")
    params = {str(key): tuple(value) if isinstance(value, list) else value for key, value in entry["params"].items()}
    samples = tuple(_numbers(each, "samples") for each in entry.get("samples", ()))
    faults = _numbers(entry.get("faults", [0.0] * len(seconds)), "faults")
    if len(faults) != len(seconds) or (samples and len(samples) != len(seconds)):
        raise ValueError("`samples` and `faults` have an entry for each of `seconds`")
    work = Amounts(**{key: _number(value, f"work.{key}") for key, value in entry["work"].items()})
    flags = tuple(str(flag) for flag in entry.get("flags", ()))
    names = [entry[key] for key in ("suite", "case", "op")]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError("`suite`, `case` and `op` are names")
    suite, case, op = names
    return Row(suite, case, op, params, work, seconds, entry["clock"], flags, samples, faults)


def _numbers(values: Iterable[Any], name: str) -> tuple[float, ...]:
    return tuple(_number(value, name) for value in values)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"`{name}`: '{value}' is no number from 0 on")
    return float(value)


def _short(seconds: float) -> float:
    """Five digits: no clock is more precise."""
    return float(f"{seconds:.5g}")


def _refuse(word: str) -> float:
    raise ValueError(f"'{word}' is no number")


def _wrong(path: str | Path, message: str, line: int = 0, column: int = 0) -> SpecError:
    return SpecError.of(Place(str(path), line, column), message, "it is what `hwsim calibrate measure` has written")
