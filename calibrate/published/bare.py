"""GPUs and PCIe slots described by their datasheet; all other values are class defaults that exclude the device.

A bare GPU states its vendor, generation, dense peaks, memory, clock, multiprocessors and caches. The classes of
`machines/classes` are computed again without the device, or without all parts of its generation and without the generation's
own file. Residuals of these rows are returned by the topics that own the rows.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hwsim import api
from hwsim.devices import Gpu
from hwsim.devices.gpu_access import latency
from hwsim.machine import Machine
from hwsim.machine.classes import class_of, with_class_defaults
from hwsim.origins import Case
from hwsim.spec import Mistakes, Tree, decode_all, find, read, tree_of
from published import classes, gemm, gpu_bandwidth, hostdev, products
from published.gpu_benches import latencies
from published.score import Miss, Score, scored

KEYS: Final = ("vendor", "generation", "flop", "vector", "memory", "sms", "clock")
SIZES: Final = ("l1", "l2")  # keys for which a datasheet has the size, and whether there are two partitions
LARGE: Final = 1024  # minimum m, n and k of a large GEMM
AFTER: Final = 0.13  # bound of bandwidth with a held-out generation; chosen after the result
BYTES: Final = 1e6  # minimum size (B) of a copy limited by the slot
_FOLDERS: Final[list[tempfile.TemporaryDirectory[str]]] = []  # deleted at the end of the process
LEVELS: Final = (0.5, 4.0)  # working sets below half a cache, or above 4x the last one: excludes ramps between levels


@functools.cache
def root(without: frozenset[str], path: str = "") -> Path:
    """Return a folder of GPU classes computed without some parts. path: class whose own file is also removed."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="hwsim-classes-"))
    folder = Path(_FOLDERS[-1].name)
    for file, text in classes.files("gpu", without).items():
        target = folder / file.relative_to(classes.ROOT)
        if target != folder / f"gpu/{path}.yaml":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    return folder


@functools.cache
def tree(name: str) -> Tree:
    """Return a part of the library with its datasheet values only."""
    whole = classes.parts("gpu")[name]
    keys = {key: each for key in KEYS if (each := whole.get(key)) is not None}
    for key in SIZES:
        if (cache := whole.get(key)) is not None:
            keys[key] = tree_of({inner: each for inner in ("size", "near") if (each := cache.get(inner)) is not None})
    return tree_of(keys)


@functools.cache
def gpu(name: str, case: Case) -> Gpu:
    """Return a bare part, completed from classes that exclude it."""
    path = class_of(tree(name), "gpu").path
    left = frozenset({name, *twins(name)})
    folder = root(left)
    if case == "generation":
        alike = [part for part, other in classes.parts("gpu").items() if class_of(other, "gpu").path == path]
        folder = root(frozenset({*left, *alike}), path)
    bare: Gpu = decode_all(with_class_defaults(tree(name), "gpu", root=folder), Gpu, Mistakes(), sourced=True)
    return bare


@functools.cache
def twins(name: str) -> list[str]:
    """Return the parts that copy values of this part by `use:`, and the part that it copies; they share measurements."""
    uses = {part: read(find("gpu", part)).text("use") for part in classes.parts("gpu")}
    return [part for part, other in uses.items() if other == name and "ecc" in part] + [
        other for other in (uses[name],) if other is not None and "ecc" in name
    ]


@functools.cache
def lonely(name: str) -> bool:
    """Return whether the library has no other part of its generation."""
    path, left = class_of(tree(name), "gpu").path, {name, *twins(name)}
    return not any(class_of(other, "gpu").path == path for part, other in classes.parts("gpu").items() if part not in left)


def scores(data: Path) -> tuple[Score, ...]:
    """Return scores of bandwidth, latency, copies and large GEMMs of bare parts."""
    found = []
    cases: tuple[tuple[Case, str, float], ...] = (("device", "GPU", 0.10), ("generation", "GPU generation", AFTER))
    for case, unit, bound in cases:
        found += [
            _score(f"memory bandwidth from the datasheet, held-out {unit}", streams(data, case), bound),
            _score(f"latency of dependent reads from the datasheet, held-out {unit}", chases(data, case), 0.15),
        ]
    return (*found, _slots(copies(data)), _score("large GEMMs from the datasheet, held-out GPU", large(data), 0.10))


def streams(data: Path, case: Case) -> list[Miss]:
    """Return BabelStream rows; if a generation has a single device, the generation is held out instead of the device."""
    rows = gpu_bandwidth._babelstream(data)  # noqa: SLF001  (one reader of the rows)
    named = [(row, gpu_bandwidth.DEVICES[row["hardware"]]) for row in rows]
    return [gpu_bandwidth._miss(row, gpu(name, case)) for row, name in named if not (case == "device" and lonely(name))]  # noqa: SLF001


def chases(data: Path, case: Case) -> list[Miss]:
    """Return the latency of a thread that follows pointers, for working sets served by a single level."""
    found = []
    for point in latencies(data):
        if case == "device" and lonely(point.part):
            continue
        bare = gpu(point.part, case)
        if within(bare, point.size):
            found.append(point.miss(latency(bare.hierarchy, point.size)))
    return found


def within(bare: Gpu, size: float) -> bool:
    """Return whether a chain of this size is served by one level."""
    if bare.l1 is None or bare.l2 is None:
        return False
    near = bare.l2.near or bare.l2.size
    return (
        size <= LEVELS[0] * bare.l1.size
        or LEVELS[1] * bare.l1.size <= size <= LEVELS[0] * near
        or size >= LEVELS[1] * bare.l2.size
    )


def copies(data: Path) -> list[Miss]:
    """Return pinned copies over a slot with known generation and lanes only; the generation's own class file is removed."""
    found = []
    for row in hostdev.rows(data):
        size, direction = float(row["transfer_bytes"]), row["direction"]
        if size < BYTES or direction not in ("h2d", "d2h") or "pageable" in row["method"] or "remote" in row["method"]:
            continue
        name, slot = hostdev.DEVICES[row["hardware"]]
        of = _host(name, int(slot[4]))
        ends = ("cpu", "it") if direction == "h2d" else ("it", "cpu")
        predicted = of.transfer(*ends, size).demand.alone(of.rates())
        found.append(Miss(f"{row['id']} {direction} {size:.0f} B", predicted, hostdev.measured(row), row["hardware"]))
    return found


@functools.cache
def _host(name: str, generation: int) -> Machine:
    link = with_class_defaults(tree_of({"gen": 0, "lanes": 16}), "pcie").put("gen", tree_of(generation))
    slot = {key: setting.value for key, setting in link.items()}
    return api.load_machine({
        "hwsim": "machine/1",
        "parts": {"cpu": {"kind": "cpu", "use": "xeon-e5-2686v4"}, "it": {"kind": "gpu", "use": name}},
        "links": [{"between": ["cpu", "it"], "kind": "pcie", **slot}],
    })  # fmt: skip


def large(data: Path) -> list[Miss]:
    """Return GEMMs with three large sides, with the tiles of the other GPUs."""
    rows = [row for row in products.rows(data) if min(row.product.m, row.product.n, row.product.k) >= LARGE]
    return [Miss(row.name(), products.seconds_of(gemm.from_datasheet(row.part), row), row.seconds, row.group) for row in rows]


def _slots(misses: Sequence[Miss]) -> Score:
    return scored(
        "copies of at least 1 MB over PCIe, held-out PCIe generation",
        misses,
        0.05,
        "cross-validated",
        metric="median of the group medians",
        why=lambda miss: hostdev.REASONS["K80"] if "K80" in miss.group else "",
    )


def _score(name: str, misses: Iterable[Miss], bound: float) -> Score:
    return scored(name, list(misses), bound, "cross-validated")
