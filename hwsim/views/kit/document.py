"""Entries of JSON documents, from attributes of objects."""

from __future__ import annotations

from typing import Any

from hwsim.ticks import FEMTO


def select_attributes(record: object, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of an object as an entry of a document; tuples become lists, and `x_s` is converted from `x_fs` if
    missing.

    Args:
        record: object.
        names: attributes whose keys have the same name.
        renamed: attribute by key.

    >>> from hwsim.demand import Capacity
    >>> select_attributes(Capacity("uplink", 16e9, "B"), "name", "rate", symbol="unit")
    {'name': 'uplink', 'rate': 16000000000.0, 'symbol': 'B'}
    """
    keys = {**{name: name for name in names}, **renamed}
    return {key: _plain(record, attribute) for key, attribute in keys.items()}


def _plain(record: object, attribute: str) -> Any:
    if attribute.endswith("_s") and not hasattr(record, attribute):
        time_fs = getattr(record, f"{attribute[:-1]}fs")
        return None if time_fs is None else time_fs / FEMTO
    value = getattr(record, attribute)
    return list(value) if isinstance(value, tuple) else value
