"""Laws of every number in a result of hwsim.

A breach is a defect of hwsim, never a mistake of the user, and says so. Laws of whole runs are in `hwsim.results.checks`.

- A number is finite, and not below 0 unless its name says that it is a difference.
- A text shows no time, amount or rate below 0, no NaN, no use above 100 %, and no percentage with an exponent.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, Final, ParamSpec

CONTRADICTS: Final = "hwsim contradicts itself"
DEFECT: Final = "this is a defect of hwsim, not of your files: please report it with the command and the files"
SIGNED: Final = frozenset(
    {"bias", "change", "difference", "error", "gap", "headroom", "log_ratio", "off", "offset", "signed", "slack"}
)
GIVEN: Final = frozenset({"set", "vary"})  # what the user said
COPY: Final = "copy"  # -1: of no copy
MANY: Final = 50  # rows of one kind from which they are looked at in columns
NAMED: Final = 3  # breaches in a message

Asked = ParamSpec("Asked")


class BrokenInvariant(AssertionError):
    """hwsim contradicts itself; never the user's mistake."""

    def __init__(self, *found: str) -> None:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        super().__init__("; ".join(found[:NAMED]) + more)
        self.found = found


def refuse(found: Iterator[str]) -> None:
    """Raise BrokenInvariant if anything was found."""
    if breaches := tuple(found):
        raise BrokenInvariant(*breaches)


def numbers(value: Any, where: str = "") -> Iterator[str]:
    """Parts of a value that are NaN, infinite, or negative and no difference.

    >>> list(numbers({"makespan_s": -1.0, "error": -0.1, "rates": [1.0, float("nan")]}))
    ['makespan_s is -1.0', 'rates[1] is nan']
    """
    if value is None or isinstance(value, bool | str):
        return
    if isinstance(value, int | float):
        if (not math.isfinite(value) if isinstance(value, float) else False) or (value < 0 and not _is_signed(where)):
            yield f"{where} is {value}"
    elif hasattr(value, "dtype"):
        if value.size and value.dtype.kind in "if" and not (value.min() >= 0 and value.max() < math.inf):
            yield f"{where} holds a number that is negative or none"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in GIVEN:
                yield from numbers(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, Sequence):
        if len(value) > MANY and is_dataclass(value[0]):
            yield from _columns(value, where)
        elif len(value) <= MANY or not _is_sound(value):
            for at, item in enumerate(value):
                yield from numbers(item, f"{where}[{at}]")
    elif is_dataclass(value):
        for entry in fields(value):
            yield from numbers(getattr(value, entry.name), f"{where}.{entry.name}" if where else entry.name)


def _columns(rows: Sequence[Any], where: str) -> Iterator[str]:
    """As `numbers` for many rows of one class, a column at a time."""
    for entry in fields(rows[0]):
        column = [getattr(row, entry.name) for row in rows]
        if not isinstance(column[0], int | float) or _is_signed(entry.name) or any(number is None for number in column):
            continue
        low = min(column)
        if low < 0 or not all(map(math.isfinite, column)):
            yield f"{where}[].{entry.name} holds {low if low < 0 else 'what is no number'}"


def _is_sound(column: Sequence[Any]) -> bool:
    """Whether it is sure that nothing of a column is below 0, infinite or NaN: of numbers, or of rows of them, all alike."""
    kinds = {*map(type, column)}
    if kinds <= {int, float}:
        return min(column) >= 0 and (kinds == {int} or all(map(math.isfinite, column)))
    if not all(issubclass(kind, tuple) for kind in kinds) or len({*map(len, column)}) > 1:
        return False
    return all(map(_is_sound, zip(*column, strict=True)))


def _is_signed(where: str) -> bool:
    name = where.rpartition(".")[2].partition("[")[0]
    return name == COPY or not SIGNED.isdisjoint(name.split("_"))


def document(value: Mapping[str, Any], **how: Any) -> str:
    """A value as JSON: keys sorted, the same bytes for the same value, a line at the end.

    Raises:
        BrokenInvariant: it holds a number that nothing can be.
    """
    refuse(
        number for key, part in value.items() if key not in {"ops", *GIVEN} for number in numbers(part, key)
    )  # ops: checked as a timeline
    import json

    try:
        return json.dumps(value, **{"indent": 1, "sort_keys": True, "ensure_ascii": False, "allow_nan": False, **how}) + "\n"
    except ValueError as error:
        raise BrokenInvariant(f"a number of the document is none: {error}") from error


_UNIT: Final = r"(?:[kMGTPE]i?)?(?:B|FLOP)(?:/s)?|[munpf]?s|min|h"
_NEGATIVE: Final = re.compile(rf"(?<![\w.%)\]'-])[-−](?!0+(?:\.0+)? )\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)? (?:{_UNIT})(?![\w-])")
_NO_NUMBER: Final = re.compile(rf"(?<![\w.'\"-])-?(?:nan|inf)(?= ?(?:{_UNIT}|%)(?!\w)|$)", re.IGNORECASE | re.MULTILINE)
_EXPONENT: Final = re.compile(r"\d(?:\.\d+)?e[+-]?\d+ ?%")
_FULL: Final = re.compile(r"[█▏▎▍▌▋▊▉·]{12} +(\d+(?:\.\d+)?) ?%")
_ROUNDED: Final = 100.5  # per cent: what still rounds to 100


def shown(text: str) -> Iterator[str]:
    """Numbers in a text for readers that are impossible; what stands in single quotes is the user's.

    >>> list(shown("cpu busy -2.45 h, +1.1e+02 %"))
    ["it shows '-2.45 h'", "it shows '1.1e+02 %'"]
    >>> list(shown("failed: '-1 s' cannot be negative"))
    []
    """
    for pattern in (_NEGATIVE, _NO_NUMBER, _EXPONENT):
        for match in pattern.finditer(text):
            yield f"it shows '{match.group()}'"
    for match in _FULL.finditer(text):
        if float(match[1]) > _ROUNDED:
            yield f"it shows a use of {match[1]} %"


def printed(text: str, given: Iterable[str] = ()) -> str:
    """The text, once it is known to show no such number.

    given: what the user wrote, names and settings: it may stand in the text, whatever it says.

    Raises:
        BrokenInvariant: it shows one.

    >>> printed("set  bytes=-3 s", ["-3 s"])
    'set  bytes=-3 s'
    """
    written_by_hwsim = text
    if next(shown(text), None) is not None:
        for words in sorted(set(given) - {""}, key=len, reverse=True):
            written_by_hwsim = written_by_hwsim.replace(words, "")
    refuse(shown(written_by_hwsim))
    return text


def _given(answer: object) -> Iterator[str]:
    """Names and settings of an answer, as the user wrote them."""
    names = (getattr(answer, field, None) for field in ("name", "machine", "workload"))
    yield from (name for name in names if isinstance(name, str))
    for setting in getattr(answer, "settings", None) or ():
        yield from map(str, setting if isinstance(setting, tuple) else (setting,))
    yield from getattr(answer, "given", ())
    timeline = getattr(answer, "timeline", None)
    for label in () if timeline is None else timeline.flat.graph.labels:
        yield from (label.name, label.program)
    for capacity in () if timeline is None else timeline.flat.graph.capacities:
        yield capacity.link or capacity.name


def guarded(report: Callable[Asked, str]) -> Callable[Asked, str]:
    """A report whose text is checked (see `printed`)."""

    @wraps(report)
    def checked(*args: Asked.args, **kwargs: Asked.kwargs) -> str:
        text = report(*args, **kwargs)
        return printed(text, itertools.chain.from_iterable(map(_given, args)))

    return checked
