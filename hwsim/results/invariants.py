"""Invariants of every number in a result.

A breach is a defect of hwsim, never a mistake of the user, and the message says so. `hwsim.results.checks` has the checks of
whole runs.

- A number is finite, and not negative unless its name marks it as a difference. - A printed text has no negative time, amount
or rate, no NaN, no utilization above 100 %, and no percentage with an exponent.
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
GIVEN: Final = frozenset({"set", "vary"})  # keys of the user's own input
COPY: Final = "copy"  # number of a replica; -1 for none
MANY: Final = 50  # number of equal rows above which they are checked by column
NAMED: Final = 3  # largest number of violations in a message

Asked = ParamSpec("Asked")


class BrokenInvariant(AssertionError):
    """Raised if hwsim contradicts itself; never the user's mistake."""

    def __init__(self, *found: str) -> None:
        more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
        super().__init__("; ".join(found[:NAMED]) + more)
        self.found = found


def raise_violations(found: Iterator[str]) -> None:
    """Raise BrokenInvariant if there are violations."""
    if violations := tuple(found):
        raise BrokenInvariant(*violations)


def numbers(value: Any, where: str = "") -> Iterator[str]:
    """Yield the parts of a value that are NaN, infinite, or negative without being a difference.

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
            yield f"{where} has a number that is negative or not finite"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in GIVEN:
                yield from numbers(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, Sequence):
        if len(value) > MANY and is_dataclass(value[0]):
            yield from _columns(value, where)
        elif len(value) <= MANY or not _is_sound(value):
            for index, item in enumerate(value):
                yield from numbers(item, f"{where}[{index}]")
    elif is_dataclass(value):
        for entry in fields(value):
            yield from numbers(getattr(value, entry.name), f"{where}.{entry.name}" if where else entry.name)


def _columns(rows: Sequence[Any], where: str) -> Iterator[str]:
    """Check many rows of one class like `numbers`, a column at a time."""
    for entry in fields(rows[0]):
        column = [getattr(row, entry.name) for row in rows]
        if not isinstance(column[0], int | float) or _is_signed(entry.name) or any(number is None for number in column):
            continue
        low = min(column)
        if low < 0 or not all(map(math.isfinite, column)):
            yield f"{where}[].{entry.name} holds {low if low < 0 else 'a number that is not finite'}"


def _is_sound(column: Sequence[Any]) -> bool:
    """Return whether a column of numbers or equal-length tuples certainly has no negative, infinite or NaN number."""
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
    """Return a value as JSON: sorted keys, same bytes for the same value, ending with a newline.

    Raises:
        BrokenInvariant: a number in it is impossible.
    """
    raise_violations(
        number for key, part in value.items() if key not in {"ops", *GIVEN} for number in numbers(part, key)
    )  # the timeline check covers ops
    import json

    try:
        return json.dumps(value, **{"indent": 1, "sort_keys": True, "ensure_ascii": False, "allow_nan": False, **how}) + "\n"
    except ValueError as error:
        raise BrokenInvariant(f"a number of the document is not finite: {error}") from error


_UNIT: Final = r"(?:[kMGTPE]i?)?(?:B|FLOP)(?:/s)?|[munpf]?s|min|h"
_NEGATIVE: Final = re.compile(rf"(?<![\w.%)\]'-])[-−](?!0+(?:\.0+)? )\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)? (?:{_UNIT})(?![\w-])")
_NO_NUMBER: Final = re.compile(rf"(?<![\w.'\"-])-?(?:nan|inf)(?= ?(?:{_UNIT}|%)(?!\w)|$)", re.IGNORECASE | re.MULTILINE)
_EXPONENT: Final = re.compile(r"\d(?:\.\d+)?e[+-]?\d+ ?%")
_FULL: Final = re.compile(r"[█▏▎▍▌▋▊▉·]{12} +(\d+(?:\.\d+)?) ?%")
_ROUNDED: Final = 100.5  # per cent; smaller values round to 100


def impossible_numbers(text: str) -> Iterator[str]:
    """Yield impossible numbers in a printed text; text in single quotes is the user's and exempt.

    >>> list(impossible_numbers("cpu busy -2.45 h, +1.1e+02 %"))
    ["it shows '-2.45 h'", "it shows '1.1e+02 %'"]
    >>> list(impossible_numbers("failed: '-1 s' cannot be negative"))
    []
    """
    for pattern in (_NEGATIVE, _NO_NUMBER, _EXPONENT):
        for match in pattern.finditer(text):
            yield f"it shows '{match.group()}'"
    for match in _FULL.finditer(text):
        if float(match[1]) > _ROUNDED:
            yield f"it shows a utilization of {match[1]} %"


def checked_text(text: str, given: Iterable[str] = ()) -> str:
    """Return the text after checking that it has no impossible number.

    Args:
        text: printed text.
        given: names and settings that the user wrote, which are exempt.

    Raises:
        BrokenInvariant: the text has an impossible number.

    >>> checked_text("set  bytes=-3 s", ["-3 s"])
    'set  bytes=-3 s'
    """
    written_by_hwsim = text
    if next(impossible_numbers(text), None) is not None:
        for words in sorted(set(given) - {""}, key=len, reverse=True):
            written_by_hwsim = written_by_hwsim.replace(words, "")
    raise_violations(impossible_numbers(written_by_hwsim))
    return text


def _given(answer: object) -> Iterator[str]:
    """Yield names and settings of an answer as the user wrote them."""
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


def check_report(report: Callable[Asked, str]) -> Callable[Asked, str]:
    """Wrap a function that returns a report so that its text is checked (see `checked_text`)."""

    @wraps(report)
    def checked(*args: Asked.args, **kwargs: Asked.kwargs) -> str:
        text = report(*args, **kwargs)
        return checked_text(text, itertools.chain.from_iterable(map(_given, args)))

    return checked
