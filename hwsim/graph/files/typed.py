"""Type checks of values from JSON files against the annotations of dataclasses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

Fits = Callable[[Any], bool]
WIDE: Final = 1 << 63  # limit of whole numbers (64 bits)
_MOST: Final = sys.float_info.max


def refuse_unfit(value: Any) -> None:
    """Raise TypeError for the first field of a dataclass, or of a nested one, whose value does not have its type."""
    kind: type = type(value)
    for name, fits in _fields(kind):
        if not fits(getattr(value, name)):
            raise TypeError(f"`{name}` of a {type(value).__name__.lower()} has an invalid value")


@cache
def _fields(kind: type) -> tuple[tuple[str, Fits], ...]:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
    return tuple((name, _check_of(hints[name])) for name in names)


@cache
def _check_of(hint: Any) -> Fits:
    """A function that checks whether a value has a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is float:
        return lambda value: type(value) in (float, int) and -_MOST <= value <= _MOST
    if hint is int:
        return lambda value: type(value) is int and -WIDE <= value < WIDE
    if hint in (str, bool):
        return lambda value: type(value) is hint
    if hint is type(None):
        return lambda value: value is None
    if origin is Literal:
        return lambda value: any(value is choice or (type(value) is type(choice) and value == choice) for choice in arguments)
    if origin in (Union, UnionType):
        checks = [_check_of(argument) for argument in arguments]
        return lambda value: any(fits(value) for fits in checks)
    if origin is tuple:
        return _of_tuple(arguments)
    if origin is Sequence:  # sequences of files are tuples
        return _of_tuple((*arguments, ...))
    if isinstance(hint, type) and not getattr(hint, "_is_protocol", False) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        inside = _fields(hint)
        return lambda value: type(value) is hint and all(fits(getattr(value, name)) for name, fits in inside)
    return lambda value: value is not None


def _of_tuple(arguments: tuple[Any, ...]) -> Fits:
    if len(arguments) == 2 and arguments[1] is ...:
        check = _check_of(arguments[0])
        return lambda value: type(value) is tuple and all(map(check, value))
    checks = [_check_of(argument) for argument in arguments]
    return lambda value: (
        isinstance(value, tuple) and len(value) == len(checks) and all(fit(part) for fit, part in zip(checks, value, strict=True))
    )
