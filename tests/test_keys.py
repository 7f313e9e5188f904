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


FILE: Final = Path(__file__).parent / "keys" / "felt.json"  # key -> which place that gives it, and which change, was felt last
KNOWN: Final[dict[str, list[int]]] = json.loads(FILE.read_text(encoding="utf-8"))
NOW: Final[dict[str, list[int]]] = {}
FELT: Final = tuple(key for key in KEYS if not is_recorded(key) and not is_mapping(key))


@cache
def loaded(number: int) -> tuple[dict[str, Any], Felt]:
    """The files of an example, and its run."""
    example = EXAMPLES[number]
    documents: dict[str, Any] = {"machine": api.load_machine(example.machine), "workload": example.workload}
    if example.framework is None:
        documents["workload"] = api.load_workload(example.workload)
    return documents, example.run(**documents)


def feels(key: str, place: int, at: int) -> bool:
    """Whether the change number `at` of the key in that place is felt."""
    if place >= len(given()[key]):
        return False
    example, file, each = given()[key][place]
    value = next(islice(changes(example, each), at, None), example)
    documents, before = loaded(EXAMPLES.index(example))
    after = before if value is example else outcome(example, file, each, value, loaded=documents)
    return isinstance(after, Felt) and after.differs(before)


def tries(key: str) -> list[str]:
    """What was tried in vain; nothing once the key is felt.  Where it was felt last is tried first."""
    found = []
    if key in KNOWN and feels(key, *KNOWN[key]):
        NOW[key] = KNOWN[key]
        return []
    for place, (example, file, site) in enumerate(given()[key]):
        documents, before = loaded(EXAMPLES.index(example))
        refused = {**REFUSED, **example.refused}
        if site.key in refused:
            value, word = refused[site.key]
            after = outcome(example, file, site, value, loaded=documents)
            if isinstance(after, str) and word in after:
                return []
            found.append(f"{example.name}: {value} is not refused with '{word}'")
        for index, value in enumerate(changes(example, site)):
            after = outcome(example, file, site, value, loaded=documents)
            if isinstance(after, Felt) and after.differs(before):
                NOW[key] = [place, index]
                return []
            what = "the same result" if isinstance(after, Felt) else after.splitlines()[0]
            found.append(f"{example.name}: {'left out' if value is GONE else value}: {what}")
    return found


def test_every_key_has_an_example() -> None:
    assert [key for key in (*FELT, *RECORDED) if key not in given()] == []


def test_examples_give_no_key_that_is_no_more() -> None:
    assert [key for key in given() if key not in KEYS] == []


@pytest.mark.parametrize("root", sorted({key.partition(".")[0] for key in FELT}))
def test_every_key_changes_something(root: str, update: bool) -> None:
    unfelt = {key: vain for key in FELT if key.partition(".")[0] == root and key in given() and (vain := tries(key))}
    assert unfelt == {}
    if update:
        felt = json.loads(FILE.read_text(encoding="utf-8")) | NOW
        FILE.write_text(json.dumps({key: felt[key] for key in KEYS if key in felt}, indent=0) + "\n", encoding="utf-8")


@pytest.mark.parametrize("key", RECORDED)
def test_a_recorded_key_changes_nothing(key: str) -> None:
    within = [instance for name in given() if name == key or name.startswith(f"{key}.") for instance in given()[name][:1]]
    assert within
    for example, file, site in within:
        documents, before = loaded(EXAMPLES.index(example))
        for value in islice(changes(example, site), 2):
            after = outcome(example, file, site, value, loaded=documents)
            assert isinstance(after, str) or not after.differs(before), (site.key, value)
