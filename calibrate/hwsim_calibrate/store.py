"""Measurements as a file: what was measured, on what, how often, and what disturbed it.

    {"hwsim": "measurements/1", "environment": {...}, "settings": {...}, "skipped": {"gpu": "no CUDA device"},
     "rows": [{"suite": "kernels", "case": "add n=1024 dtype=fp32 into=new", "op": "add",
               "params": {"n": 1024, "dtype": "fp32", "into": "new", "with": "array", "threads": 1},
               "work": {"flop": 1024, "reads": 8192, "writes": 4096, "calls": 1},
               "seconds": [3.1e-07, 3.0e-07, 3.2e-07], "clock": "cpu", "flags": [],
               "samples": [[3.1e-07, 3.3e-07], ...], "faults": [0, 0, 0]}]}

`seconds` holds one number per round, the quiet estimate of that round for one call; `samples` holds all that was timed
in each, `faults` how many pages each call met for the first time.  JSON, packed by gzip if the name ends in .gz, written
whole or not at all.  The words of `params` are in calibrate/hwsim_calibrate/suites/__init__.py.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

from hwsim.spec import Mistake, Mistakes, Place, SpecError, did_you_mean

FORMAT: Final = "measurements/1"
Clock = Literal["cpu", "wall", "device"]  # of one thread; of the world; of a GPU, between two of its events
CLOCKS: Final[tuple[str, ...]] = get_args(Clock)
Param = str | int | float | bool | None | tuple[int, ...]
_DATA: Final = Path(__file__).parent / "data"
_STORED: Final = ".json.gz"
_MANY: Final = 10  # rounds from which on the lowest tenth counts, not the lowest


@dataclass(frozen=True, slots=True)
class Amounts:
    """What one call does: operations, bytes that the program reads and writes, and calls of the library."""

    flop: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    calls: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a suite.

    seconds: of one call, per round.  samples: all that was timed, per round.  faults: pages met for the first time per call,
    per round.  flags: what makes it doubtful, in words of `harness.FLAGS`.
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
        """Which case it is: names are unique within a suite."""
        return self.suite, self.case

    @property
    def quiet(self) -> float:
        """Seconds of a call on the machine undisturbed: the lowest round, from ten rounds on the lowest tenth.

        >>> Row("kernels", "a", "add", {}, Amounts(), (3.0, 2.0, 9.0)).quiet
        2.0
        """
        ordered = sorted(self.seconds)
        return ordered[0] if len(ordered) < _MANY else ordered[len(ordered) // 10]

    @property
    def spread(self) -> float:
        """By how much the median round is above the quiet one: 0.05 for 5 %."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) // 2] / self.quiet - 1.0


@dataclass(frozen=True, slots=True)
class Measurements:
    """A file of them.

    environment: see `environment.fingerprint`.  settings: seed, budget, suites.  skipped: suite -> why it was not measured.
    """

    environment: Mapping[str, Any]
    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    def of(self, suite: str = "", op: str = "") -> Iterator[Row]:
        """The rows of a suite, of an op, or of both."""
        return (row for row in self.rows if suite in ("", row.suite) and op in ("", row.op))

    def with_rows(self, rows: Iterable[Row]) -> Measurements:
        """These rows in the place of those of the same cases, new cases after the others."""
        found = {row.key: row for row in self.rows} | {row.key: row for row in rows}
        return replace(self, rows=tuple(found.values()))

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all.

        Raises:
            OSError: the folder does not exist, is full, or may not be written to.
        """
        from hwsim.views.kit.writing import write  # the other reports come with it, and measuring needs none

        data = json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        raw = data.replace('{"suite"', '\n{"suite"').encode() + b"\n"
        return write(path, [gzip.compress(raw, 6, mtime=0) if str(path).endswith(".gz") else raw])

    def to_json(self) -> dict[str, Any]:
        """What the file says."""
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
    """A file that is there, or one that comes with hwsim, by its name.

    Raises:
        SpecError: neither.
    """
    known, path = stored(), Path(source)
    if path.is_file():
        return path
    if str(source) in known:
        return known[str(source)]
    raise SpecError(
        [Mistake(None, f"there is no file '{source}', nor measurements of that name", did_you_mean(str(source), known))]
    )


def load(source: str | Path) -> Measurements:
    """Read a file of measurements, by path or by name.

    Raises:
        SpecError: it is none, and where it is wrong.
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
    found = of_json(data, Place(str(path), 0, 0), mistakes)
    mistakes.raise_if_any()
    return found


def of_json(data: Mapping[str, Any], place: Place, mistakes: Mistakes) -> Measurements:
    """What a file says; what is wrong is noted and left out."""
    rows: list[Row] = []
    known: set[tuple[str, str]] = set()
    said = data.get("rows", [])
    for number, each in enumerate(said if isinstance(said, list) else []):
        try:
            row = _row_of_json(each)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            message = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            mistakes.add(place, f"rows[{number}]: {message}", "a row is as `hwsim calibrate measure` writes it")
            continue
        if row.key in known:
            mistakes.add(place, f"rows[{number}]: '{row.case}' of suite '{row.suite}' is there twice")
        known.add(row.key)
        rows.append(row)
    parts: dict[str, Mapping[str, Any]] = {}
    for key in ("environment", "settings", "skipped"):
        parts[key] = data.get(key, {})
        if not isinstance(parts[key], dict):
            mistakes.add(place, f"`{key}` is no mapping")
    if not isinstance(said, list):
        mistakes.add(place, "`rows` is no list")
    return Measurements(parts["environment"], tuple(rows), parts["settings"], parts["skipped"])


def _row_to_json(row: Row) -> dict[str, Any]:
    work = row.work
    found: dict[str, Any] = {
        "suite": row.suite, "case": row.case, "op": row.op, "params": dict(row.params),
        "work": {"flop": work.flop, "reads": work.reads, "writes": work.writes, "calls": work.calls},
        "seconds": [_short(each) for each in row.seconds], "clock": row.clock, "flags": list(row.flags),
    }  # fmt: skip
    if row.samples:
        found["samples"] = [[_short(each) for each in samples] for samples in row.samples]
    if any(row.faults):
        found["faults"] = [_short(each) for each in row.faults]
    return found


def _row_of_json(said: Mapping[str, Any]) -> Row:
    seconds = _numbers(said["seconds"], "seconds")
    if not seconds or min(seconds) <= 0:
        raise ValueError("`seconds` is a list of times above 0, one per round")
    if said["clock"] not in CLOCKS:
        raise ValueError(f"`clock` is one of {', '.join(CLOCKS)}, not '{said['clock']}'")
    params = {str(key): tuple(each) if isinstance(each, list) else each for key, each in said["params"].items()}
    samples = tuple(_numbers(each, "samples") for each in said.get("samples", ()))
    faults = _numbers(said.get("faults", [0.0] * len(seconds)), "faults")
    if len(faults) != len(seconds) or (samples and len(samples) != len(seconds)):
        raise ValueError("`samples` and `faults` have an entry for each of `seconds`")
    amounts = {key: _number(each, f"work.{key}") for key, each in said["work"].items()}
    flags = tuple(str(each) for each in said.get("flags", ()))
    names = [said[key] for key in ("suite", "case", "op")]
    if not all(isinstance(each, str) and each for each in names):
        raise ValueError("`suite`, `case` and `op` are names")
    suite, case, op = names
    return Row(suite, case, op, params, Amounts(**amounts), seconds, said["clock"], flags, samples, faults)


def _numbers(said: Iterable[Any], what: str) -> tuple[float, ...]:
    return tuple(_number(each, what) for each in said)


def _number(said: Any, what: str) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said) or said < 0:
        raise ValueError(f"`{what}`: '{said}' is no number from 0 on")
    return float(said)


def _short(seconds: float) -> float:
    """Five digits: no clock says more of a call."""
    return float(f"{seconds:.5g}")


def _refuse(word: str) -> float:
    raise ValueError(f"'{word}' is no number")


def _wrong(path: str | Path, message: str, line: int = 0, column: int = 0) -> SpecError:
    return SpecError([Mistake(Place(str(path), line, column), message, "it is what `hwsim calibrate measure` has written")])
