"""What the parts of the library have in common, for the files of their classes: `python scripts/classes.py [--check]`.

`machines/classes/gpu/**.yaml` end in a block that this program writes; what stands above it is written by hand. Each number is
the median over the parts of the class that have one of their own: measured, fitted, or read off a document, never guessed, and
parts that share a value by `use:` count once. Times that the clock sets are counted in cycles, what the multiprocessors do
together in bytes a clock and multiprocessor. The spread is the standard deviation of the logarithm over the parts; of a single
part, that of the nearest wider class with several. It is never below 3 %, and doubled where the class is of no vendor.
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
LEAST = 0.03  # spread of a number that all parts share: they share its measurement, too
ALONE = 0.35  # spread of a number that a single part of the whole kind has


@dataclass(frozen=True)
class Number:
    """A key of a part, and what it is counted in.

    per: "" as it is, "clock" in cycles, "bytes" in bytes a clock and multiprocessor, "each" in bytes a clock, "l2" in parts of
        the size of that cache.
    generations: only of a generation: others need not have such a thing.
    """

    key: str
    unit: str = ""
    per: str = ""
    generations: bool = False


NUMBERS = tuple(Number(**each) for each in declared("classes")["numbers"])
AHEAD = {"amd": 2.4}  # a cache has at least so many times the bandwidth of the memory behind it; others 1.6
CLOCKS = 1.5e9  # a GPU that does not say its clock, as a fallback of what is counted in cycles
FAMILIES = ("gpu",)


@dataclass(frozen=True)
class Found:
    """A number of a part, counted as `Number.per` says."""

    part: str
    value: float
    source: str


@functools.cache
def parts(kind: str) -> dict[str, Tree]:
    """The parts of the library of a kind that are of a class, `use:` followed."""
    out = {}
    for name in names(kind):
        mistakes = Mistakes()
        tree = resolve(with_origins(read(find(kind, name))), mistakes, kind=kind)
        mistakes.raise_if_any()
        if tree.text("class") is None:
            out[name] = tree
    return out


def number(tree: Tree, key: str) -> tuple[float, str] | None:
    """The number under a key and the kind of its source; None if the part has none."""
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
    """The number of a part as the class counts it; None where it is a guess or not there."""
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
    """By class and key what its parts have; classes of vendors hold all of their generations, "" everything."""
    out: dict[str, dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for name, tree in trees.items():
        path = class_of(tree, kind).path
        for entry in NUMBERS:
            found = counted(tree, entry)
            if found is None:
                continue
            for at in {path, path.partition("/")[0], ""}:
                known = out[at][entry.key]
                raw = number(tree, entry.key)
                if not any(_same(trees, each, entry, raw) for each in known):
                    known.append(Found(name, *found))
    return out


def _same(trees: Mapping[str, Tree], there: Found, entry: Number, raw: tuple[float, str] | None) -> bool:
    """Whether another part has the very same number, by `use:` or "as the V100"; sizes of a datasheet may well be equal."""
    return not entry.key.endswith((".size", ".threads")) and number(trees[there.part], entry.key) == raw


def spread(values: Sequence[float], wider: Iterable[Sequence[float]]) -> float:
    """Standard deviation of the logarithm; of a single value that of the nearest wider class that has several."""
    for group in (values, *wider):
        if len(group) > 1:
            return max(LEAST, statistics.stdev(map(math.log, group)))
    return ALONE


def text(entry: Number, found: Sequence[Found], wide: float, ahead: float, size: float) -> str:
    """The number of a class as its file has it; size: of the last cache."""
    value = statistics.median(each.value for each in found)
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
    """Of a multiprocessor: all of them together have what the next level has, at least."""
    return f'["max({value}, 1.05 * $l2_bandwidth / $sms)", "max({value}, {ahead:.3g} * $memory_bandwidth / $sms)"]'


def _cycles(value: float) -> str:
    """Cycles over the clock; without a clock a time."""
    return f"[{value:.3g} / $clock, {_unit(value / CLOCKS, 's')}]"


# The second cache and the memory have clocks of their own: four generations of NVIDIA's take the same time within 2 and 10 %.
BESIDE = {"l2.latency": "min({}, $l2_miss)", "l2.far": "min({}, $l2_miss)", "l2.miss": "max({}, $l2_latency)"}


def _plain(entry: Number, value: float) -> str:
    if entry.key in BESIDE:  # within what the part states of the levels beside it
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
    """The written part of the file of a class."""
    lines: list[str] = []
    before: list[str] = []
    ahead = AHEAD.get(path.partition("/")[0], 1.6)
    size = statistics.median([each.value for each in by_class[path].get("l2.size", ())] or [0.0])
    for entry in NUMBERS:
        found = by_class[path].get(entry.key, ())
        if not found or (entry.generations and "/" not in path):
            continue
        wider = [by_class[at].get(entry.key, ()) for at in (path.partition("/")[0], "")]
        wide = spread([each.value for each in found], [[each.value for each in group] for group in wider])
        wide *= 1.0 if path else 2.0
        *sections, last = entry.key.split(".")
        for level, section in enumerate(sections):
            if before[: level + 1] != sections[: level + 1]:
                lines.append(f"{'  ' * level}{section}:")
        before = sections
        of = ", ".join(each.part for each in found[:6])
        lines.append(f"{'  ' * len(sections)}{last}: {text(entry, found, wide, ahead, size)}  # {of}")
    return "\n".join(lines) + "\n" if lines else ""


def files(kind: str, without: Collection[str] = ()) -> dict[Path, str]:
    """The files of the classes of a kind, as they should be; without some parts, as if nobody had measured these."""
    by_class = collect({name: tree for name, tree in parts(kind).items() if name not in without}, kind)
    out = {}
    for path in sorted({*by_class, *(each.removeprefix(f"{kind}/") for each in names("class") if each.startswith(f"{kind}/"))}):
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
    """Write the files, or compare them; the exit code."""
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
