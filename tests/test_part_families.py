"""Parts that use another say only what is their own, and no two parts are nearly the same without saying so."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import permutations

import pytest

from hwsim.spec import Mistakes, Tree, find, names, read, resolve, sources

PARTS = names("part")
IN_COMMON = 0.7  # of the numbers of a part: with more it is the other with changes


def used(name: str) -> str | None:
    """The part a part uses, as `gpu/v100`."""
    kind, _, part = name.partition("/")
    base = read(find(kind, part)).text("use")
    return base and f"{kind}/{base}"


@cache
def numbers(name: str) -> dict[str, tuple[str, str]]:
    """Path of each number of a part, all that it uses filled in -> the number and where it is from."""
    kind, _, part = name.partition("/")
    tree, mistakes = read(find(kind, part)), Mistakes()
    whole = resolve(tree, mistakes, kind=tree.text("kind") or kind)
    mistakes.raise_if_any()
    return told(whole)


def told(tree: Tree) -> dict[str, tuple[str, str]]:
    return {path: (str(value_at(tree, path).plain()), str(origin)) for path, origin in sources(tree).items()}


def value_at(tree: Tree, path: str) -> Tree:
    """The number at a path of `sources`; keys may hold dots (`1.5`), elements of lists go by place."""
    if not path:
        return tree.get("value") or tree
    listed = enumerate(tree.elements() if tree.is_list else ())
    for key, each in (*tree.items(), *((each.text("name") or str(at), each) for at, each in listed)):
        if path == key or path.startswith(f"{key}."):
            return value_at(each, path[len(key) + 1 :])
    raise KeyError(path)


def repeated(own: dict[str, tuple[str, str]], base: dict[str, tuple[str, str]]) -> list[str]:
    return [path for path, number in own.items() if base.get(path) == number]


def root(name: str) -> str:
    return root(base) if (base := used(name)) else name


def near(one: dict[str, tuple[str, str]], other: dict[str, tuple[str, str]]) -> bool:
    """Whether `one` had better be written as `other` with changes; what uses another can take no key of it away."""
    return other.keys() <= one.keys() and len(other) >= 10 and len(one.items() & other.items()) > IN_COMMON * len(one)


@pytest.mark.parametrize("name", [name for name in PARTS if used(name)])
def test_a_part_that_uses_another_says_only_what_is_its_own(name: str) -> None:
    kind, _, part = name.partition("/")
    base = used(name)
    assert base is not None
    assert repeated(told(read(find(kind, part))), numbers(base)) == []


def test_no_two_parts_are_nearly_the_same_without_saying_so() -> None:
    roots = {name: root(name) for name in PARTS}
    pairs = [(one, other) for one, other in permutations(PARTS, 2) if one.partition("/")[0] == other.partition("/")[0]]
    assert [(one, other) for one, other in pairs if roots[one] != roots[other] and near(numbers(one), numbers(other))] == []


def test_every_gpu_that_is_sold_says_what_links_it_has() -> None:
    """So that a card without NVLinks or of an older PCI Express, put in the place of another, is not a faster machine."""
    cards = [name for name in PARTS if name.startswith("gpu/") and not name.startswith("gpu/d2l-")]
    assert [name for name in cards if "nvlinks" not in numbers(name)] == []
    without = {name for name in cards if "pcie" not in numbers(name)}
    assert without == {
        "gpu/iris-pro-580",
        "gpu/tpu-v4",
        "gpu/tpu-v5e",
        "gpu/tpu-v5p",
        "gpu/tpu-v6e",
    }  # on the chip, or not published


def test_families_are_shallow() -> None:
    """A reader opens few files: the base, and seldom the base of the base."""
    depth = Counter(steps(name) for name in PARTS)
    assert max(depth) <= 3, depth


def steps(name: str) -> int:
    return 1 + steps(base) if (base := used(name)) else 0
