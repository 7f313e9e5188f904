"""Compute class defaults from the parts of the library: `python scripts/classes.py [--check]`.

The files `machines/classes/gpu/**.yaml` end with a block written by this program; the text above it is written by hand. A
default is the median over the parts of a class that have their own value: measured, fitted, or from a document, but not
guessed. Parts that share a value by `use:` count once. Times that scale with the clock are in cycles; rates of all
multiprocessors are in bytes per clock and multiprocessor. The spread is the standard deviation of the logarithm over the parts.
A class with a single part takes the spread of the nearest wider class with several. The spread is at least 3 %, and doubled for
classes without a vendor.
"""

from __future__ import annotations

import functools
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hwsim.machine.classes import class_of
from hwsim.spec import Mistakes, Tree, find, names, read, resolve
from hwsim.spec.numbers import with_origins
from hwsim.units import Quantity, parse
from published.parts import declared

ROOT = Path(__file__).resolve().parents[2] / "machines/classes"
MARK = "# ---- medians over the parts of the class, written by `python scripts/classes.py` ----\n"
KNOWN = ("measured", "fitted", "datasheet", "recalled", "standard", "stated")
LEAST = 0.03  # spread of a value shared by all parts, which also share its measurement
ALONE = 0.35  # spread of a value that only one part of the kind has


@dataclass(frozen=True)
class Number:
    """A key of a part and its unit in the class file.

    per: "" as stated; "clock" in cycles; "bytes" in bytes per clock and multiprocessor; "each" in bytes per clock; "l2" as a
    fraction of that cache's size. generations: the key is written for GPU generations only, because other classes may lack the
    feature.
    """

    key: str
    unit: str = ""
    per: str = ""
    generations: bool = False


NUMBERS = tuple(Number(**record) for record in declared("classes")["numbers"])
AHEAD = {"amd": 2.4}  # minimum bandwidth of a cache relative to the memory behind it; typically 1.6
CLOCKS = 1.5e9  # assumed clock of a GPU without a stated clock, for values in cycles
FAMILIES = ("gpu",)


@dataclass(frozen=True)
class Found:
    """A value of a part, in the unit `Number.per`."""

    part: str
    value: float
    source: str


@functools.cache
def parts(kind: str) -> dict[str, Tree]:
    """Return the parts of a kind that belong to a class, with `use:` resolved."""
    out = {}
    for name in names(kind):
        mistakes = Mistakes()
        tree = resolve(with_origins(read(find(kind, name))), mistakes, kind=kind)
        mistakes.raise_if_any()
        if tree.text("class") is None:
            out[name] = tree
    return out


def number(tree: Tree, key: str) -> tuple[float, str] | None:
    """Return a value and the kind of its source; None if the part does not have it."""
    node: Tree | None = tree
    for step in key.split("."):
        node = node.get(step) if node is not None else None
    if node is not None and node.is_mapping:
        node = node.get("value")
    if node is None or node.is_mapping or node.value is None:
        return None
    value = parse(node.value) if isinstance(node.value, str) else node.value
    if isinstance(value, Quantity):
        value = value.value
    if not isinstance(value, int | float):
        return None
    return float(value), node.origin.kind if node.origin else "stated"


def counted(tree: Tree, entry: Number) -> tuple[float, str] | None:
    """Return a part's value in the class's unit; None if it is missing or a guess."""
    found = number(tree, entry.key)
    if found is None or found[1] not in KNOWN:
        return None
    value, source = found
    clock, sms = number(tree, "clock"), number(tree, "sms")
    if (entry.per and clock is None) or (entry.per == "bytes" and sms is None):
        return None
    last = number(tree, "l2.size")
    by = {"": 1.0, "clock": clock[0] if clock else 1.0, "l2": 1.0 / last[0] if last else 1.0}
    by["each"] = 1.0 / by["clock"]
    by["bytes"] = by["each"] / (sms[0] if sms else 1.0)
    return value * by[entry.per], source


def collect(trees: Mapping[str, Tree], kind: str) -> dict[str, dict[str, list[Found]]]:
    """Return the values of parts by class and key; a vendor class contains all its generations, "" contains all parts."""
    out: dict[str, dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for name, tree in trees.items():
        path = class_of(tree, kind).path
        for entry in NUMBERS:
            found = counted(tree, entry)
            if found is None:
                continue
            for class_path in {path, path.partition("/")[0], ""}:
                known = out[class_path][entry.key]
                raw = number(tree, entry.key)
                if not any(_same(trees, sample, entry, raw) for sample in known):
                    known.append(Found(name, *found))
    return out


def _same(trees: Mapping[str, Tree], there: Found, entry: Number, raw: tuple[float, str] | None) -> bool:
    """Return whether another part has the same value by `use:` or by "as the V100"; equal datasheet sizes do not count."""
    return not entry.key.endswith((".size", ".threads")) and number(trees[there.part], entry.key) == raw


def spread(values: Sequence[float], wider: Iterable[Sequence[float]]) -> float:
    """Return the standard deviation of the logarithm; for a single value, that of the nearest wider class with several values."""
    for group in (values, *wider):
        if len(group) > 1:
            return max(LEAST, statistics.stdev(map(math.log, group)))
    return ALONE


def text(entry: Number, found: Sequence[Found], wide: float, ahead: float, size: float) -> str:
    """Return a class value as written to the file. size: size of the last cache."""
    value = statistics.median(sample.value for sample in found)
    written = {
        "": _plain(entry, value),
        "clock": _cycles(value),
        "each": _each(f"{value:.3g} B * $clock", 1.05 * ahead),
        "l2": f"[{value:.3g} * $l2_size, {_unit(value * size, 'B')}]",
        "bytes": f'"max({value:.3g} B * $clock * $sms, {ahead} * $memory_bandwidth)"',
    }[entry.per]
    needs = ", needs: sms" if entry.per == "each" else ""
    return f"{{value: {written}, spread: {wide * 100:.0f} %, parts: {len(found)}{needs}}}"


def _each(value: str, ahead: float) -> str:
    """Return the rate of one multiprocessor; all of them together have at least the rate of the next level."""
    return f'["max({value}, 1.05 * $l2_bandwidth / $sms)", "max({value}, {ahead:.3g} * $memory_bandwidth / $sms)"]'


def _cycles(value: float) -> str:
    """Return a time as cycles over the clock, with a fallback in seconds for an unknown clock."""
    return f"[{value:.3g} / $clock, {_unit(value / CLOCKS, 's')}]"


# L2 and memory have their own clocks: their latencies differ by 2 and 10 % over four NVIDIA generations.
BESIDE = {"l2.latency": "min({}, $l2_miss)", "l2.far": "min({}, $l2_miss)", "l2.miss": "max({}, $l2_latency)"}


def _plain(entry: Number, value: float) -> str:
    if entry.key in BESIDE:  # bounded by the part's stated values of neighbouring levels
        return f'["{BESIDE[entry.key].format(_unit(value, entry.unit))}", {_unit(value, entry.unit)}]'
    if entry.key == "l2.sustained.copy":  # a cache with a stated bandwidth is faster than the memory behind it
        return f'["min(1, max({value:.3g}, 1.05 * $memory_bandwidth / $l2_bandwidth))", {value * 100:.3g} %]'
    if entry.unit == "%":
        return f"{value * 100:.3g} %"
    return _unit(value, entry.unit) if entry.unit else f"{value:.4g}"


def _unit(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value * 1e6:.3g} us" if value >= 1e-6 else f"{value * 1e9:.3g} ns"
    if unit == "B":
        return f"{value / 1024:.6g} KiB" if value < 2**20 else f"{value / 2**20:.4g} MiB"
    return f"{value / 1e9:.3g} GHz" if unit == "Hz" else f"{value / 1e9:.3g} G{unit}"


def block(path: str, by_class: Mapping[str, Mapping[str, Sequence[Found]]]) -> str:
    """Return the generated block of a class file."""
    lines: list[str] = []
    before: list[str] = []
    ahead = AHEAD.get(path.partition("/")[0], 1.6)
    size = statistics.median([sample.value for sample in by_class[path].get("l2.size", ())] or [0.0])
    for entry in NUMBERS:
        found = by_class[path].get(entry.key, ())
        if not found or (entry.generations and "/" not in path):
            continue
        wider = [by_class[parent].get(entry.key, ()) for parent in (path.partition("/")[0], "")]
        wide = spread([sample.value for sample in found], [[sample.value for sample in group] for group in wider])
        wide *= 1.0 if path else 2.0
        *sections, last = entry.key.split(".")
        for level, section in enumerate(sections):
            if before[: level + 1] != sections[: level + 1]:
                lines.append(f"{'  ' * level}{section}:")
        before = sections
        of = ", ".join(sample.part for sample in found[:6])
        lines.append(f"{'  ' * len(sections)}{last}: {text(entry, found, wide, ahead, size)}  # {of}")
    return "\n".join(lines) + "\n" if lines else ""


def files(kind: str, without: Collection[str] = ()) -> dict[Path, str]:
    """Return the expected class files of a kind. without: parts to exclude, as if they had not been measured."""
    by_class = collect({name: tree for name, tree in parts(kind).items() if name not in without}, kind)
    out = {}
    for path in sorted({*by_class, *(stem.removeprefix(f"{kind}/") for stem in names("class") if stem.startswith(f"{kind}/"))}):
        file = ROOT / (f"{kind}/{path}.yaml" if path else f"{kind}.yaml")
        head, _, block_there = (
            file.read_text(encoding="utf-8").partition(MARK) if file.exists() else (f"hwsim: class/1\nkind: {kind}\n", "", "")
        )
        own = {entry.key.partition(".")[0] for entry in NUMBERS}
        if strange := [key for key in re.findall(r"(?m)^(\w+):", block_there) if key not in own]:
            raise SystemExit(f"{file}: {', '.join(strange)} stands below the line that this program writes: move it above")
        out[file] = head + MARK + block(path, by_class)
    return out


def main(arguments: Sequence[str]) -> int:
    """Write the files, or compare them, and return the exit code."""
    changed = []
    for kind in FAMILIES:
        for file, wanted in files(kind).items():
            if not file.exists() or file.read_text(encoding="utf-8") != wanted:
                changed.append(file)
                if "--check" not in arguments:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(wanted, encoding="utf-8")
    for file in changed:
        print(("differs: " if "--check" in arguments else "written: ") + str(file.relative_to(ROOT.parents[1])))
    return 1 if changed and "--check" in arguments else 0
