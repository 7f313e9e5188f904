"""The last touch on what was read: what cannot be, and where each number is from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hwsim.devices import Device
from hwsim.links import LinkKind
from hwsim.machine.naming import below
from hwsim.spec import Mistakes, Tree, plan, sources

if TYPE_CHECKING:
    from hwsim.machine.libraries.kinds import Library


def finish(model: Device | LinkKind | Library, tree: Tree, mistakes: Mistakes) -> None:
    """Note what cannot be, and tell the model where each of its numbers is from."""
    for key, message, hint in model.problems():
        at = tree
        *path, last = key.split(".")
        for step in path:
            at = at.get(step) or at
        mistakes.add(at.key_place(last), message, hint)
    known = sources(tree)
    _tell(model, {path: str(known.get(path, "as given")) for path in leaves(tree)})


def _tell(model: Any, told: dict[str, str]) -> None:
    """Nobody else has seen the model yet: `sources` is no key of the file, so decode cannot give it."""
    object.__setattr__(model, "sources", told)
    kind: Any = type(model)
    for each in plan(kind):
        inner = getattr(model, each.name)
        if hasattr(inner, "sources"):  # a part inside a part
            start = f"{each.key}."
            _tell(inner, {path.removeprefix(start): source for path, source in told.items() if path.startswith(start)})


def leaves(tree: Tree, path: str = "") -> list[str]:
    """Paths of the scalars of a mapping; a number with its source counts as one."""
    found: list[str] = []
    for key, each in tree.items():
        full = below(path, key)
        if each.is_mapping and each.get("value") is None:
            found += leaves(each, full)
        else:
            found.append(full)
    return found
