"""No key is accepted and ignored: for every key of every schema, some legal change changes the result, warns or is refused.

A new key needs an example that gives it (`tests/keys/examples`), or a reason why no result depends on it (`field(record=...)`).
"""

from __future__ import annotations

import json
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest

from hwsim import api
from tests.keys.examples import EXAMPLES
from tests.keys.feeling import GONE, REFUSED, Example, Felt, changes, outcome
from tests.keys.schemas import Found, inside, keys

KEYS: Final = keys()
Given = tuple[Example, str, Found]


@cache
def given() -> dict[str, list[Given]]:
    """By key, where the examples give it."""
    found: dict[str, list[Given]] = {}
    for example in EXAMPLES:
        for file, site in example.given():
            found.setdefault(site.key, []).append((example, file, site))
    return found


RECORDED: Final = tuple(key for key, field in KEYS.items() if field.record)


def is_recorded(key: str) -> bool:
    """Whether it is said of the key, or of a mapping around it, that no result depends on it."""
    return any(key == outer_key or key.startswith(f"{outer_key}.") for outer_key in RECORDED)


def is_mapping(key: str) -> bool:
    """Whether the key holds other keys, which have examples of their own."""
    return bool(inside(KEYS[key])) and any(inner_key.startswith(f"{key}.") for inner_key in KEYS)


FELT: Final = tuple(key for key in KEYS if not is_recorded(key) and not is_mapping(key))
Witness = list[Any]  # an example, which of its places that give the key, and which change there; -1: its value that is refused
FILE: Final = Path(__file__).parent / "keys" / "felt.json"  # by key, a change that has an effect
WITNESSES: Final[dict[str, Witness]] = json.loads(FILE.read_text(encoding="utf-8"))


@cache
def loaded(number: int) -> dict[str, Any]:
    """The files of an example."""
    example = EXAMPLES[number]
    workload = api.load_workload(example.workload) if example.framework is None else example.workload
    return {"machine": api.load_machine(example.machine), "workload": workload}


@cache
def plain(number: int, interval: bool) -> Felt:
    """The run of an example as it is."""
    return EXAMPLES[number].run(**loaded(number), interval=interval)


def refusal(where: Given) -> tuple[Any, str] | None:
    """A value that is refused with a word, where that is the effect: of a key that can be nothing else, that it is missing."""
    example, _, site = where
    is_fixed = next(changes(example, site), example) is example
    missing = (GONE, f"'{site.key.rpartition('.')[2]}' is missing") if is_fixed else None
    return {**REFUSED, **example.refused}.get(site.key, missing)


def misses(where: Given, at: int) -> str | None:
    """Nothing if the change is felt there; what happens instead, and "" if there is no such change.

    A run whose interval is computed has all that the others have, so most changes are felt without one.
    """
    example, file, site = where
    number = EXAMPLES.index(example)
    if at < 0:
        value, word = refusal(where) or (GONE, "a word")
        after = outcome(example, file, site, value, loaded=loaded(number))
        return None if isinstance(after, str) and word in after else f"not refused with '{word}'"
    for value in islice(changes(example, site), at, at + 1):
        for interval in (False, True):
            after = outcome(example, file, site, value, loaded=loaded(number), interval=interval)
            if isinstance(after, str):
                return after.splitlines()[0]
            if after.differs(plain(number, interval)):
                return None
        return f"{'left out' if value is GONE else value}: the same result"
    return ""


def places(key: str) -> dict[tuple[str, int], Given]:
    """By an example and a number, where it gives the key."""
    names = [where[0].name for where in given()[key]]
    return {(name, names[:index].count(name)): given()[key][index] for index, name in enumerate(names)}


def is_felt(key: str) -> bool:
    """Whether the change that was found last still has an effect."""
    name, number, at = WITNESSES.get(key, ("", 0, 0))
    where = places(key).get((name, number))
    return where is not None and misses(where, at) is None


def search(key: str) -> tuple[Witness | None, list[str]]:
    """The first change with an effect, and all that were tried in vain."""
    vain = list[str]()
    for (name, number), where in places(key).items():
        at = -1 if refusal(where) else 0
        while (missed := misses(where, at)) != "":
            if missed is None:
                return [name, number, at], vain
            vain.append(f"{name}: {missed}")
            at += 1
    return None, vain


def test_every_key_has_an_example() -> None:
    assert [key for key in (*FELT, *RECORDED) if key not in given()] == []


def test_examples_give_no_key_that_is_no_more() -> None:
    assert [key for key in given() if key not in KEYS] == []


@pytest.mark.parametrize("root", sorted({key.partition(".")[0] for key in FELT}))
def test_every_key_changes_something(root: str, update: bool) -> None:
    """Only the change that was found last is tried; `--update` searches another one, and says what it tried."""
    unfelt = [key for key in FELT if key.partition(".")[0] == root and key in given() and not is_felt(key)]
    if update:
        found = {key: search(key) for key in unfelt}
        witnesses = {key: witness for key, (witness, _) in found.items() if witness}
        kept = json.loads(FILE.read_text(encoding="utf-8")) | witnesses
        rows = (f"{json.dumps(key)}: {json.dumps(kept[key])}" for key in FELT if key in kept)
        FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
        assert {key: vain for key, (witness, vain) in found.items() if witness is None} == {}
    else:
        assert unfelt == [], "`pytest tests/test_keys.py --update` searches a change with an effect"


@pytest.mark.parametrize("key", RECORDED)
def test_a_recorded_key_changes_nothing(key: str) -> None:
    within = [instance for name in given() if name == key or name.startswith(f"{key}.") for instance in given()[name][:1]]
    assert within
    for example, file, site in within:
        number = EXAMPLES.index(example)
        for value in islice(changes(example, site), 2):
            after = outcome(example, file, site, value, loaded=loaded(number))
            assert isinstance(after, str) or not after.differs(plain(number, True)), (site.key, value)
