"""A part with numbers stated anew: what was fitted on it goes in proportion to them, and is a guess from then on.

    peaks          clock x units, unless they are stated anew themselves
    times          1 / clock
    rates          of one unit: peak / units; of one unit out of memory: bandwidth / units; of caches: the larger of both
    efficiency     (power / peak)^0.6 if the power is stated anew, at most 97 %
    power          clock^(1 / 0.6) x units

**Source**: speed of large products over power: published GEMM rates of MI300X and MI325X (exponents 0.61 to 0.67), and trainings
on power-limited cards (0.588). The other lines are definitions.
**Error**: that of a device which nobody measured: the case of its numbers is `generation`.
**Range**: the same chip with other numbers. A number that a file of the library states beside `use:` holds as it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from hwsim.demand import WHAT_IF
from hwsim.devices.gpu_matmul import tiles_like
from hwsim.spec import Origin, Tree
from hwsim.spec.use import of_user

POWER: Final = 0.6
FULL: Final = 0.97
_UNTIMED: Final = re.compile(
    r"(.*\.)?(size|lanes|pcie|nvlinks|count|ports|dimms|dimm_slots|max_channels)|(price|endurance|let)\b.*"
)
_WHOLE: Final = ("flop", "vector", "memory", "core", "power")  # mappings whose numbers are the part's own
_FITTED: Final = ("fitted", "measured", "guess")
_DTYPES: Final = ("bf16", "fp16", "fp32")

Laws = tuple[tuple[re.Pattern[str], Mapping[str, float]], ...]


def _laws(*rows: tuple[str, dict[str, float]]) -> Laws:
    return tuple((re.compile(pattern), exponents) for pattern, exponents in rows)


_POWER = (r"power(\.(loaded|memory))?", {"clock": 1 / POWER, "units": 1.0})
_LAWS: Final[Mapping[str, Laws]] = {  # by kind of part: path of a number, and what it goes with
    "gpu": _laws(
        (r"(flop|vector)\.\w+|random|occupancy\.blocks", {"clock": 1, "units": 1}),
        (r"l2\.(bandwidth|together\.(near|far))", {"cache": 1}),
        (r"l1\.bandwidth", {"cache": 1, "units": -1}),
        (r"l[12]\.(latency|near|far|miss)|occupancy\.start", {"clock": -1}),
        (r"(matmul|attention|experts)\..*\.(start|adding|each|joining|row|kernel)", {"clock": -1}),
        (r"(attention\.decode|experts)\..*\.rate", {"bandwidth": 1, "units": -1}),
        (r"(matmul|attention|experts)\..*\.(loads|rate|passing|tokens|cached)", {"peak": 1, "units": -1, "reach": 1}),
        (r"(matmul|experts)\..*\.efficiency|attention\..*\.share(\.\w+)?|efficiency\.matmul", {"reach": 1}),
        _POWER,
    ),
    "cpu": _laws(
        (r"flop\.\w+", {"clock": 1, "units": 1}),
        (r"core\.isa\..*clock|random|(kernels|libraries\.\w+)\.products\..*\.flop", {"clock": 1}),
        (r"(kernels|libraries\.\w+)\.levels\.memory\.(read|write|update)", {"bandwidth": 1}),
        (r"(kernels|libraries\.\w+)\.levels\..*\.(read|write|update)", {"clock": 1}),
        (r"(kernels|libraries\.\w+)\..*\.(call|row|left|right|result|edge|depth|each(\.\w+)?)", {"clock": -1}),
        _POWER,
    ),
}


class Change(NamedTuple):
    """A number that the user states anew, the one in its place before, and new over old."""

    node: Tree
    before: Tree
    ratio: float


Changes = Mapping[str, Change]


def restated(tree: Tree, kind: str) -> Changes:
    """Numbers of a part or a link that the user states anew and that have a part in times, by path."""
    if tree.over is None:
        return {}
    return {path: change for path, node in _numbers(tree) if (change := _change(node, kind, path)) is not None}


def before(tree: Tree, changes: Changes, path: str = "") -> Tree:
    """The part as it was."""
    made = {
        key: changes[name].before if (name := f"{path}{key}") in changes else before(child, changes, f"{name}.")
        for key, child in tree.items()
    }
    return Tree(made, tree.place, tree.keys, tree.origin) if tree.is_mapping else tree


def proportioned(tree: Tree, kind: str, changes: Changes) -> Tree:
    """The tree of a part as it was, with its new numbers, and with what was fitted in proportion to them."""
    tiles = dict((tree.get("matmul") or Tree(None)).items())
    for path in changes:
        first, _, dtype = path.partition(".")
        like = tiles_like(dtype, tiles) if first == "flop" else None
        if like is not None:  # also those of another number format, whose peak stays
            tiles[dtype] = tiles[like]
            tree = tree.put("matmul", Tree(tiles, tree.place))
    return _scaled(tree, "", kind, changes)


def unfelt(tree: Tree, kind: str) -> Iterator[tuple[str, Tree]]:
    """Numbers of a GPU that the user adds to a part which has none to be in proportion to."""
    if kind == "gpu" and tree.get("use") is not None and not any(child.over for _, child in (tree.get("flop") or tree).items()):
        for key in ("clock", "sms"):
            node = tree.get(key)
            if node is not None and node.over is None and of_user(node):
                yield key, node


def rated(tree: Tree) -> float | None:
    """Watts of a part before its power was stated anew, or went with its clock; None where it was not."""
    power = tree.get("power")
    node = (power.get("loaded") or power) if power is not None else None
    return None if node is None or node.over is None else _watts(_before(node))


def _before(node: Tree) -> Tree:
    """The value that a file of the library, or the first of the user's own, gave in its place."""
    found = node.over or node
    while found.over is not None and of_user(found):
        found = found.over
    return found


def _watts(node: Tree) -> float | None:
    number = (node.get("loaded") or node).quantity
    return None if number is None else number.value


def _change(node: Tree, kind: str, path: str) -> Change | None:
    if node.over is None or not of_user(node) or (_UNTIMED.fullmatch(path) and kind != "pcie"):
        return None
    if kind != "gpu" and path.startswith("power"):
        return None
    old = _before(node)
    new_value, old_value = _watts(node), _watts(old)
    if new_value is None or old_value is None or math.isclose(new_value, old_value, rel_tol=1e-12):
        return None
    return Change(node, old, new_value / old_value if new_value and old_value else 1.0)


def _numbers(tree: Tree, path: str = "") -> Iterator[tuple[str, Tree]]:
    for key, child in tree.items():
        name = f"{path}.{key}" if path else key
        if child.is_mapping and child.get("value") is None:
            yield from _numbers(child, name)
        elif child.quantity is not None:
            yield name, child


def _scaled(tree: Tree, path: str, kind: str, changes: Changes) -> Tree:
    made: dict[str, Tree] = {}
    for key, child in tree.items():
        name = f"{path}{key}"
        if (change := changes.get(name)) is not None:
            number = change.before.get("value") or change.before
            made[key] = replace(change.node, origin=change.node.origin or Origin(WHAT_IF, f"in place of {number.value}"))
        elif child.is_mapping and child.get("value") is None:
            made[key] = _scaled(child, f"{name}.", kind, changes)
        else:
            made[key] = _fitted(child, name, kind, changes)
    return replace(tree, value=made)


def _fitted(node: Tree, path: str, kind: str, changes: Changes) -> Tree:
    """A number that is not stated anew."""
    number, quantity = node.get("value") or node, node.quantity
    if quantity is None or (node.over is not None and of_user(node)):
        return node
    factor = _factor(path, kind, changes)
    if factor != 1.0:
        value = quantity.value * factor
        if factor > 1 and ("efficiency" in path or "share" in path):
            value = max(quantity.value, min(FULL, value))
        origin = Origin(WHAT_IF, f"a guess in proportion, from {number.value}")
        return Tree(replace(quantity, value=value), node.place, origin=origin, over=node)
    known = number.origin
    if known is not None and known.kind in _FITTED and any(path.startswith(_around(each)) for each in changes):
        return Tree(number.value, node.place, origin=Origin(WHAT_IF, f"a guess, from the part that was {known}"))
    return node


def _around(path: str) -> str:
    """Beginning of the paths of all that hangs on a number."""
    first, _, rest = path.partition(".")
    return "" if not rest or first in _WHOLE else path.rpartition(".")[0] + "."


def _factor(path: str, kind: str, changes: Changes) -> float:
    exponents = next((exponents for pattern, exponents in _LAWS.get(kind, ()) if pattern.fullmatch(path)), None)
    if exponents is None:
        return 1.0

    def ratio(*paths: str, usual: float = 1.0) -> float:
        return next((changes[each].ratio for each in paths if each in changes), usual)

    clock, units, memory = ratio("clock"), ratio("sms", "cores"), ratio("memory.bandwidth")
    words = re.split(r"[.\s-]", path)
    peak = ratio(*(f"flop.{each}" for each in (words if words[0] == "matmul" else (*words, *_DTYPES))), usual=clock * units)
    power = ratio("power", "power.loaded", usual=0.0)
    values = {
        "clock": clock, "units": units, "bandwidth": memory, "cache": max(clock * units, memory), "peak": peak,
        "reach": (power / peak) ** POWER if power else 1.0,
    }  # fmt: skip
    return float(math.prod(values[name] ** exponent for name, exponent in exponents.items()))
