"""What-if parts: if the user changes numbers of a library part, its fitted numbers are scaled in proportion and become guesses.

    peaks          clock x units, unless they are changed themselves
    times          1 / clock
    memory         channels x rate of the modules, unless the bandwidth is changed itself
    rates          of one unit: peak / units; from memory to one unit: bandwidth / units; of caches: the larger ratio
    efficiency     (power / peak)^0.6 if the power is changed, at most 97 %
    power          clock^(1 / 0.6) x units

**Source**: speed of large products over power: published GEMM rates of MI300X and MI325X (exponents 0.61 to 0.67), and trainings
on power-limited GPUs (0.588), in which attention is not slower. The other lines are definitions.
**Error**: that of an unmeasured device: the case of its numbers is `generation`.
**Range**: the same chip with other numbers. A number that a library file states beside `use:` is not scaled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from hwsim.devices.gpu_matmul import tiles_like
from hwsim.spec import Origin, Tree, find, read
from hwsim.spec.library import of_user

POWER: Final = 0.6  # exponent of speed over power
FULL: Final = 0.97  # maximum scaled efficiency
_UNTIMED: Final = re.compile(
    r"(.*\.)?(size|lanes|pcie|nvlinks|count|ports|dimms|dimm_slots|max_channels)|(price|endurance|let)\b.*"
)
_WHOLE: Final = ("flop", "vector", "memory", "core", "power")  # mappings whose numbers describe the part itself
_FITTED: Final = ("fitted", "measured", "elsewhere", "guess", "twin")
_DTYPES: Final = ("bf16", "fp16", "fp32")

_RATE: Final = ("memory", "dram", "rate")
_MEMORY: Final = (r"memory\.bandwidth", {"bandwidth": 1.0})
_POWER: Final = (r"power(\.(loaded|memory))?", {"clock": 1 / POWER, "units": 1.0})
# by kind of part: (path of a number, exponents of the ratios that scale it)
_LAWS: Final[Mapping[str, tuple[tuple[str, Mapping[str, float]], ...]]] = {
    "gpu": (
        (r"(flop|vector)\.\w+|random|occupancy\.blocks", {"clock": 1, "units": 1}),
        (r"l2\.(bandwidth|together\.(near|far))", {"cache": 1}),
        (r"l1\.bandwidth", {"cache": 1, "units": -1}),
        (r"l[12]\.(latency|far|miss)|occupancy\.start", {"clock": -1}),
        (r"(matmul|attention|experts)\..*\.(start|adding|each|joining|row|kernel)", {"clock": -1}),
        (r"(attention\.decode|experts)\..*\.rate", {"bandwidth": 1, "units": -1}),
        (r"(matmul|attention|experts)\..*\.(loads|rate|passing|tokens|cached)", {"peak": 1, "units": -1, "reach": 1}),
        (r"(matmul|experts)\..*\.efficiency|efficiency\.matmul", {"reach": 1}),
        _MEMORY,
        _POWER,
    ),
    "cpu": (
        _MEMORY,
        (r"flop\.\w+", {"clock": 1, "units": 1}),
        (r"core\.isa\..*clock|random|kernels\.products\..*\.flop", {"clock": 1}),
        (r"kernels\.levels\.memory\.(read|write|update)", {"bandwidth": 1}),
        (r"kernels\.levels\..*\.(read|write|update)", {"clock": 1}),
        (r"kernels\..*\.(call|row|left|right|result|edge|depth|each(\.\w+)?)", {"clock": -1}),
        _POWER,
    ),
}


Changes = Mapping[str, Tree]


def changed_numbers(tree: Tree, kind: str) -> Changes:
    """Return the numbers of a part or link that the user changed and that affect times, by path."""
    if tree.over is None:
        return {}
    changes = {path: node for path, node in _numbers(tree) if node.over and _is_anew(path, kind) and _ratio(node) is not None}
    name, rate = tree.at(("memory", "use")), tree.at(_RATE)
    if name is not None and name.over is not None and of_user(name) and rate is not None:  # other memory modules
        old = read(find("memory", str(_before(name).value))).at(_RATE[1:])
        changes[".".join(_RATE)] = replace(rate, place=name.place, over=old)
    return changes


def before_changes(tree: Tree, changes: Changes, path: str = "") -> Tree:
    """Return the part before the changes."""
    made = {
        key: _before(changes[name]) if (name := f"{path}{key}") in changes else before_changes(child, changes, f"{name}.")
        for key, child in tree.items()
    }
    return Tree(made, tree.place, tree.keys, tree.origin) if tree.is_mapping else tree


def scale_fitted(tree: Tree, kind: str, changes: Changes) -> Tree:
    """Return a part with changed numbers, and with its fitted numbers scaled in proportion; tree: before the changes."""
    tiles = dict((tree.get("matmul") or Tree(None)).items())
    for path in changes:
        first, _, dtype = path.partition(".")
        like = tiles_like(dtype, tiles) if first == "flop" else None
        if like is not None:  # also those of another data type whose peak is unchanged
            tiles[dtype] = tiles[like]
            tree = tree.put("matmul", Tree(tiles, tree.place))
    return _scaled(tree, "", kind, changes, {})


def ineffective_numbers(tree: Tree, kind: str) -> Iterator[tuple[str, Tree]]:
    """Yield `clock` and `sms` that the user adds to a GPU of another file that states neither, so that nothing can be scaled."""
    peaks = tree.get("flop") or tree
    if kind == "gpu" and tree.get("use") is not None and not any(child.over for _, child in peaks.items()):
        for key in ("clock", "sms"):
            node = tree.get(key)
            if node is None or node.over is not None or (node.origin is not None and node.origin.kind == "default"):
                continue
            if of_user(node) and node.place.file != peaks.place.file:
                yield key, node


def rated_power(tree: Tree) -> float | None:
    """Return the power (W) of a part before it was changed or scaled with the clock; None if it was not."""
    numbers = _numbers(tree.having({key: child for key, child in tree.items() if key == "power"}))
    node = next((node for path, node in numbers if path in ("power", "power.loaded") and node.over is not None), None)
    return None if node is None else _watts(_before(node))


def _numbers(tree: Tree, path: str = "") -> Iterator[tuple[str, Tree]]:
    for key, child in tree.items():
        name = f"{path}.{key}" if path else key
        if child.quantity is not None:
            yield name, child
        elif child.is_mapping:
            for inside, node in _numbers(child, name):  # a mapping of idle and loaded power can replace a single number
                yield inside, replace(node, over=child.over) if inside == "power.loaded" and node.over is None else node


def _before(node: Tree, file: str | None = None) -> Tree:
    """Return the value that `file` stated; default: the library's value, else the user's first value."""
    while node.over is not None and of_user(node) and node.place.file != file:
        node = node.over
    return node


def _watts(node: Tree) -> float | None:
    number = (node.get("loaded") or node).quantity
    return None if number is None else number.value


def _is_anew(path: str, kind: str) -> bool:
    return not (_UNTIMED.fullmatch(path) and kind != "pcie") and (kind == "gpu" or not path.startswith("power"))


def _ratio(node: Tree, file: str | None = None) -> float | None:
    """Return new / old of a number; None if it is unchanged."""
    new, old = _watts(node), _watts(_before(node, file))
    if new is None or old is None or math.isclose(new, old, rel_tol=1e-12):
        return None
    return new / old if new and old else 1.0


def _scaled(tree: Tree, path: str, kind: str, changes: Changes, known: dict[str, dict[str, float]]) -> Tree:
    """Return a mapping with its fitted numbers scaled; known: ratios of the changes to the numbers of each file."""
    made: dict[str, Tree] = {}
    for key, child in tree.items():
        name, file = f"{path}{key}", (child.get("value") or child).place.file
        if (new := changes.get(name)) is not None:
            number = (old := _before(new)).get("value") or old
            what_if = Origin("what-if", f"in place of {number.value}", 0.0) if old.origin else None  # if the old one has a source
            made[key] = replace(new, origin=new.origin or what_if)
        elif child.is_mapping and child.get("value") is None:
            made[key] = _scaled(child, f"{name}.", kind, changes, known)
        else:
            if file not in known:
                known[file] = {change: ratio for change, node in changes.items() if (ratio := _ratio(node, file)) is not None}
            made[key] = _fitted(child, name, kind, known[file])
    return replace(tree, value=made)


def _fitted(node: Tree, path: str, kind: str, ratios: Mapping[str, float]) -> Tree:
    """Return an unchanged number scaled by the ratios of the changed ones."""
    number, quantity = node.get("value") or node, node.quantity
    if quantity is None or not ratios or (node.over is not None and of_user(node)):
        return node
    factor = _factor(path, kind, ratios)
    if factor != 1.0:
        value = quantity.value * factor
        if factor > 1 and ("efficiency" in path or "share" in path):
            value = max(quantity.value, min(FULL, value))
        origin = Origin("what-if", f"a guess in proportion, from {number.value}")
        return Tree(replace(quantity, value=value), node.place, origin=origin, over=node)
    known = number.origin
    if known is not None and known.kind in _FITTED and any(path.startswith(_around(ratio)) for ratio in ratios):
        return Tree(number.value, node.place, origin=Origin("what-if", f"a guess, from the part that was {known!s}"))
    return node


def _around(path: str) -> str:
    """Return the prefix of the paths of all numbers that depend on a number."""
    first, _, rest = path.partition(".")
    return "" if not rest or first in _WHOLE else path.rpartition(".")[0] + "."


@cache
def _exponents(path: str, kind: str) -> Mapping[str, float] | None:
    return next((exponents for pattern, exponents in _LAWS.get(kind, ()) if re.fullmatch(pattern, path)), None)


def _factor(path: str, kind: str, ratios: Mapping[str, float]) -> float:
    if (exponents := _exponents(path, kind)) is None:
        return 1.0
    clock, units = ratios.get("clock", 1.0), ratios.get("sms", ratios.get("cores", 1.0))
    channels = math.prod(ratios.get(f"memory.{key}", 1.0) for key in ("channels", "dram.channels", "dram.rate"))
    memory = ratios.get("memory.bandwidth", channels)
    words = re.split(r"[.\s-]", path)
    formats = words if words[0] == "matmul" else (*words, *_DTYPES)
    peak = next((ratios[f"flop.{format_}"] for format_ in formats if f"flop.{format_}" in ratios), clock * units)
    power = ratios.get("power", ratios.get("power.loaded"))
    values = {
        "clock": clock, "units": units, "bandwidth": memory, "cache": max(clock * units, memory), "peak": peak,
        "reach": 1.0 if power is None else (power / peak) ** POWER,
    }  # fmt: skip
    return float(math.prod(values[name] ** exponent for name, exponent in exponents.items()))
