"""The house grows no larger and its words stay plain: sizes may fall and may not rise; no hard word comes back."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from tests.test_docs import ROOT

SIZES: Final = {
    "lines of hwsim": 123_600,
    "lines of both products": 140_800,
    "modules of a run of three ops": 125,
    "files that a bandwidth passes": 24,
    "functions that a bandwidth passes": 71,
}


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


def test_words_are_plain() -> None:
    assert dict(script("plain_words").counts()) == {}, "python scripts/plain_words.py --list RULE"
