"""Fields of schemas: frozen dataclasses whose fields carry a line of documentation and bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

from hwsim.spec.mistakes import NOWHERE

_NONE_GIVEN: Final = dataclasses.MISSING


def field(
    doc: str,
    *,
    default: Any = _NONE_GIVEN,
    default_factory: Callable[[], Any] | Any = _NONE_GIVEN,
    key: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    exclusive_minimum: float | None = None,
    one_or_many: bool = False,
    choices: Iterable[str] | None = None,
    example: str | None = None,
    record: str | None = None,
    doubted: bool = True,
    kw_only: bool | Any = _NONE_GIVEN,
) -> Any:
    """A dataclass field with what its reader and its documentation need.

    Args:
        doc: one line that says what it means.
        key: the key in the file where it cannot be the field's name (`return`).
        minimum, maximum, exclusive_minimum: bounds in SI units, for the number or every number of a tuple.
            A field with a unit is never negative unless a minimum below zero is given.
        one_or_many: for `tuple[X, ...]`: a single X stands for a tuple of one.
        choices: for `str`: the texts that are accepted.
        record: the reason why no result depends on the value; every other key changes a result, warns or is refused.
        doubted: answers carry how unsure its number is, as those of its class do (`doubts_of`); False: that is refused.
        kw_only: it is given by name only: in a base of classes whose own fields must be given.
    """
    given = {
        "key": key,
        "minimum": minimum,
        "maximum": maximum,
        "exclusive_minimum": exclusive_minimum,
        "one_or_many": one_or_many or None,
        "choices": tuple(choices) if choices is not None else None,
        "example": example,
        "record": record,
        "doubted": None if doubted else False,
    }
    metadata = {"doc": doc, **{name: value for name, value in given.items() if value is not None}}
    if default_factory is not _NONE_GIVEN:
        return dataclasses.field(default_factory=default_factory, metadata=metadata, kw_only=kw_only)
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def place_field() -> Any:
    """A field of type Place that `decode` fills with where the mapping stands: for mistakes found later."""
    return dataclasses.field(default=NOWHERE, compare=False, repr=False, kw_only=True)
