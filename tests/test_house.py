"""The house grows smaller and its words plainer: counts that may fall, and may not rise."""

from __future__ import annotations

from types import ModuleType
from typing import Final

import pytest

from tests.test_docs import ROOT

SIZES: Final = {
    "lines of hwsim": 57_300,
    "modules of a run of three ops": 240,
    "files that a bandwidth passes": 31,
    "functions that a bandwidth passes": 99,
}
WORDS: Final = {
    "of-first": 124, "told": 41, "manieth": 3, "of-which": 35, "that-of": 136, "so-many": 114,
    "nobody": 91, "beside": 111, "kin": 5, "copy-of-the-model": 9, "argument-of": 78, "hangs-together": 3,
    "two-spaces": 384, "inverted": 10, "question-first": 649, "goes-off": 33, "long-sentence": 106, "vague-name": 1496,
}  # fmt: skip


def script(name: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_house_grows_no_larger() -> None:
    counted: dict[str, int] = script("counts").counts()
    assert {name: count for name, count in counted.items() if count > SIZES[name]} == {}


@pytest.mark.parametrize("rule", WORDS)
def test_words_grow_plainer(rule: str, counted: dict[str, int]) -> None:
    assert counted.get(rule, 0) <= WORDS[rule], f"python scripts/plain_words.py --list {rule}"


@pytest.fixture(scope="module")
def counted() -> dict[str, int]:
    found: dict[str, int] = dict(script("plain_words").counts())
    return found
