"""Study files (`hwsim: study/1`): files to simulate, points, measures and output.

hwsim: study/1
machine: workstation
workload: imagenet-epoch
points:
  grid: {machine.disk.use: [hdd-7200rpm, nvme-990pro], workers: 1..64:x2}
measure: [time, batches/s]
rows: rows.csv
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hwsim.devices.offers import PaymentOption
from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, SpecError, Tree, check_header, decode, did_you_mean, field, place_field, read
from hwsim.spec.library import find
from hwsim.spec.schema import json_schema
from hwsim.studies.distributions import Quantile, distribution, draw_points
from hwsim.studies.grid import MAX_STUDY_POINTS, Points, grid, parse_values, scalar
from hwsim.studies.measures import refuse_unknown
from hwsim.studies.point import Content, with_path_values
from hwsim.units import UnitError, parse
from hwsim.workload.sources import Source, data_or_name

if TYPE_CHECKING:
    from hwsim.costs.bill import Paying

FORMAT: Final = "study/1"
MAX_DRAWN_POINTS: Final = 100_000
_KINDS: Final = ("grid", "zip", "random", "latin")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyKeys:
    """The keys of a study file."""

    hwsim: str = field("format of the file: study/1", default=FORMAT)
    name: str = field("title of the study", default="", record="for readers")
    notes: str = field("free text", default="", record="for readers")
    machine: Tree = field("machine: a library name, a file (relative to this one), or the content of a file", example="dgx-h100")
    workload: Tree = field("workload, in the same forms as `machine`", example="llama3-8b-serving")
    points: Tree = field("points to simulate: `grid`, `zip`, `random` or `latin`", example="{grid: {gpus: [1, 2, 4]}}")
    measure: tuple[str, ...] = field("measures in each row, besides the time; the first ranks the rows", default=(),
                                     one_or_many=True, example="[time, mfu]")  # fmt: skip
    settings: Mapping[str, Tree] = field("values that apply to every point, by path", key="set", default_factory=dict)
    rows: str = field("CSV file to write the rows to", default="", example="rows.csv")
    journal: str = field(
        "journal of finished points, from which an interrupted study continues (default: name of `rows`, with .journal)",
        default="",
    )
    prices: str | None = field("price list for energy and cost: a file, or `library`", default=None,
                               example="prices.yaml")  # fmt: skip
    provider: str = field("only provider whose prices are used, with `prices` (default: all)", default="", example="OCI")
    rent: PaymentOption | None = field("payment for the machines, with `prices` (default: purchase)", default=None)
    site: Tree | None = field("site of the machines: the name of a site in the price list, or its numbers", default=None,
                              example="{pue: 1.2, grid: 360 g/kWh}")  # fmt: skip
    place: Place = place_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnKeys:
    """Random points: independent (random) or a Latin hypercube (latin)."""

    points: int = field("number of points", minimum=1, maximum=MAX_DRAWN_POINTS)
    seed: int = field("seed of the random points", default=0)
    of: Mapping[str, Tree] = field("distribution of the values of each path",
                                   example="{workers: 1..64, decode: {normal: {mean: 6 ms, sd: 1 ms}}}")  # fmt: skip


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A parsed study with its points.

    Args:
        machine: path or content of the machine file.
        workload: path or content of the workload file.
        points: points to simulate.
        measures: measures of each row.
        settings: values that apply to every point, by path.
        rows: CSV file to write; None if it is not stated.
        journal: journal file; None if it is not stated.
        places: place of each varied or set path in the file.
        paying: payment option; None if the file states none.
    """

    machine: Path | Tree
    workload: Path | Tree
    points: Points
    measures: tuple[str, ...]
    settings: Mapping[str, object]
    rows: Path | None
    journal: Path | None
    places: Mapping[str, Place]
    paying: Paying | None = None

    def check(self, machine: Content, workload: Content) -> None:
        """Check every path before the first point runs.

        Raises:
            SpecError: paths that do not exist, each with its place.
        """
        mistakes = Mistakes()
        firsts = {path: values[0] for path, values in zip(self.points.paths, self.points.values, strict=True)}
        for path, value in {**self.settings, **firsts}.items():
            try:
                with_path_values(machine, workload, {path: value})
            except SpecError as error:
                for mistake in error.mistakes:
                    mistakes.add(self.places.get(path, mistake.place), mistake.message, mistake.hint)
        mistakes.raise_if_any()


def load_study(source: Source) -> StudyFile:
    """Load a study file.

    Raises:
        SpecError: all mistakes of the file.
        OSError: the file cannot be read.
    """
    named = data_or_name(source)
    tree = named if isinstance(named, Tree) else read(named)
    mistakes = Mistakes()
    check_header(tree, FORMAT, mistakes)
    mistakes.raise_if_any()
    keys = decode(tree, StudyKeys, mistakes)
    mistakes.raise_if_any()
    if keys is None:
        raise SpecError(mistakes)
    folder = tree.place.folder or Path()
    points = read_points(keys.points, mistakes)
    machine, workload = (
        _side(kind, tree, folder, mistakes) for kind, tree in (("machine", keys.machine), ("workload", keys.workload))
    )
    for place, name in zip(_places(tree.get("measure")), keys.measure, strict=False):
        refuse_unknown(name, place, mistakes)
    settings = {path: scalar(value.plain()) for path, value in keys.settings.items()}
    for path in points.paths if points is not None else ():
        if path in settings and (among := tree.get("set")) is not None:
            mistakes.add(among.key_place(path), f"`{path}` is both set and varied")
    rows = folder / keys.rows if keys.rows else None
    if rows is not None and rows.suffix != ".csv":
        mistakes.add((tree.get("rows") or tree).place, f"`rows` must be a .csv file, got '{rows.name}'")
    paying = _paying(keys, tree, folder, mistakes)
    mistakes.raise_if_any()
    if points is None or machine is None or workload is None:
        raise SpecError(mistakes)
    journal = folder / keys.journal if keys.journal else None
    places = {**_keys(tree.get("set")), **_keys(keys.points.get("grid") or keys.points.get("zip"))}
    for drawn_by in ("random", "latin"):
        places |= _keys((keys.points.get(drawn_by) or keys.points).get("of"))
    return StudyFile(machine, workload, points, keys.measure, settings, rows, journal, places, paying)


def _paying(keys: StudyKeys, tree: Tree, folder: Path, mistakes: Mistakes) -> Paying | None:
    """Return the payment option of the study; None if it states neither prices nor site."""
    for name in ("provider", "rent"):
        if keys.prices is None and tree.get(name) is not None:
            mistakes.add(tree.key_place(name), f"`{name}` requires `prices`", "prices: library")
    if keys.prices is None and keys.site is None:
        return None
    from hwsim.costs.bill import Paying
    from hwsim.costs.prices import load_prices
    from hwsim.costs.site import read_site

    try:
        listed = None if keys.prices in (None, "library") else find("prices", keys.prices, folder, tree.key_place("prices"))
        prices = load_prices(listed, provider=keys.provider, place=tree.key_place("provider"))
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None
    site = None if keys.site is None else read_site(keys.site, mistakes, dict(prices.sites))
    return Paying(None if keys.prices is None else prices, keys.rent or "purchase", site)


def _side(kind: str, tree: Tree, folder: Path, mistakes: Mistakes) -> Path | Tree | None:
    if tree.is_mapping:
        return tree
    if not isinstance(tree.value, str):
        mistakes.add(tree.place, f"`{kind}` must be a name or a mapping, got {tree.what()}")
        return None
    try:
        return find(kind, tree.value, folder, tree.place)
    except SpecError as error:
        mistakes.extend(error.mistakes)
        return None


def _keys(tree: Tree | None) -> dict[str, Place]:
    return {key: tree.key_place(key) for key, _ in tree.items()} if tree is not None else {}


def _places(tree: Tree | None) -> Sequence[Place]:
    return [element.place for element in tree.elements()] if tree is not None else ()


def read_points(tree: Tree, mistakes: Mistakes) -> Points | None:
    """Parse the points of a study; return None and add their mistakes if they are invalid."""
    if not tree.is_mapping or len(tree.items()) != 1:
        mistakes.add(tree.place, f"expected one of {', '.join(_KINDS)}, got {tree.what()}", "grid: {gpus: [1, 2, 4]}")
        return None
    ((kind, inside),) = tree.items()
    if kind not in _KINDS:
        mistakes.add(tree.key_place(kind), f"unknown kind of points `{kind}`", did_you_mean(kind, _KINDS) or ", ".join(_KINDS))
        return None
    before = len(mistakes)
    if kind in ("random", "latin"):
        return _drawn(inside, mistakes, latin=kind == "latin")
    if not inside.is_mapping or not inside.items():
        mistakes.add(inside.place, f"`{kind}` must map paths to values, got {inside.what()}", "{gpus: [1, 2, 4]}")
        return None
    values = {path: _values(path, listed, mistakes) for path, listed in inside.items()}
    if len(mistakes) > before:
        return None
    return _grid(tree, values, mistakes) if kind == "grid" else _zip(inside, values, mistakes)


def _values(path: str, tree: Tree, mistakes: Mistakes) -> tuple[object, ...]:
    """Parse the values of a path: a list, a text with ranges, or one value."""
    before = len(mistakes)
    values: list[object] = []
    units: dict[str, str] = {}  # what the values of the path measure, with the first that does
    for element in tree.elements():
        value = element.plain()
        measured = _measured(value)
        if measured and units.setdefault(measured, str(value)) and len(units) > 1:
            first = next(iter(units))
            message = f"values of `{path}` have different dimensions: '{value}' is {measured}, '{units[first]}' is {first}"
            mistakes.add(element.place, message, "use one dimension for all values of a path")
            return ()
        if not isinstance(value, str):
            values.append(value)
            continue
        try:
            values += parse_values(value) if not tree.is_list or ".." in value else (scalar(value),)
        except SpecError as error:
            for mistake in error.mistakes:
                mistakes.add(element.place, mistake.message, mistake.hint)
    if not values and len(mistakes) == before:
        mistakes.add(tree.place, f"`{path}` has no values", "[1, 2, 4], or 1..64:x2")
    return tuple(values)


def _measured(value: object) -> str:
    """Return the dimension of a text with a unit, with its article; "" for other values."""
    if not isinstance(value, str):
        return ""
    try:
        dimension = parse(value).dimension
    except UnitError:
        return ""
    return "" if dimension.plain else dimension.name


def _grid(tree: Tree, values: Mapping[str, tuple[object, ...]], mistakes: Mistakes) -> Points | None:
    points = math.prod(map(len, values.values()))
    if points > MAX_DRAWN_POINTS:
        sizes = " x ".join(str(len(value)) for value in values.values())
        mistakes.add(tree.key_place("grid"), f"{sizes} = {points} points exceed the limit of {MAX_DRAWN_POINTS} per study",
                     "use fewer values, or latin: {points: 1000, of: ...}")  # fmt: skip
        return None
    return grid(values, most=max(MAX_STUDY_POINTS, MAX_DRAWN_POINTS))


def _zip(inside: Tree, values: Mapping[str, tuple[object, ...]], mistakes: Mistakes) -> Points | None:
    first = next(iter(values))
    for path, column in values.items():
        if len(column) != len(values[first]):
            mistakes.add(inside.key_place(path), f"`{path}` has {len(column)} values, `{first}` has {len(values[first])}",
                         "zip needs equally many values for each path")  # fmt: skip
            return None
    return Points(tuple(values), tuple(zip(*values.values(), strict=True)))


def _drawn(tree: Tree, mistakes: Mistakes, *, latin: bool) -> Points | None:
    before = len(mistakes)
    keys = decode(tree, DrawnKeys, mistakes)
    if keys is None:
        return None
    if not keys.of:
        mistakes.add(tree.key_place("of"), "`of` names no path to sample", "of: {workers: 1..64}")
        return None
    quantiles: dict[str, Quantile] = {}
    for path, inside in keys.of.items():
        quantile = distribution(inside, mistakes)
        if quantile is not None:
            quantiles[path] = quantile
    if len(mistakes) > before:
        return None
    rows = tuple(draw_points(tuple(quantiles.values()), keys.points, keys.seed, latin=latin))
    return Points(tuple(quantiles), rows)


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of a study file."""
    return json_schema(StudyKeys, header=FORMAT)


__all__ = ["DrawnKeys", "StudyFile", "StudyKeys", "load_study", "read_points", "study_schema"]
