"""`failures/1`: how often parts of a large job fail, and what a restart takes.

    parts: {gpu: {failures: 31, among: 1024, during: 90 day}, host: {of: node, mtbf: 50000 h}}
    restart: {detect: 1 min, replace: 4 min, start: 4 min, load: auto}
    spares: {nodes: auto, percentile: 99 %, repair: 48 h}

An `mtbf` is of ONE part of its kind. The rates of all parts of a job add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Problem, Tree, check_header, decode, field, find, place_field, read, resolve
from hwsim.units import Ratio, Seconds

FORMAT: Final = "failures/1"
COUNTED: Final = "failures: 3, among: 64, during: 90 day"  # an example
USUAL: Final = "meta-llama-3"  # the library's rates, unless others are named


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The rate of failures of one part: its mean time between failures, or a count of them."""

    of: str = field("what it is counted by: gpu, node, or another kind of part (default: its name)", default="", example="node")
    mtbf: Seconds | None = field(
        "mean time between failures of one of them", default=None, exclusive_minimum=0.0, maximum=1e13, example="50000 h"
    )
    failures: int | None = field("instead of `mtbf`: failures that were counted", default=None, minimum=1, example="268")
    among: int | None = field("of how many of them", default=None, minimum=1, example="16384")
    during: Seconds | None = field("in how long", default=None, exclusive_minimum=0.0, example="54 day")
    replace: bool = field("the node goes to repair and another takes its place (else it starts again)", default=True)
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """(key, message, hint) of what cannot be."""
        counted = (self.failures, self.among, self.during)
        if (self.mtbf is None) == all(each is None for each in counted):
            yield "mtbf", "a part has either an `mtbf` or counted failures", f"mtbf: 50000 h   or   {COUNTED}"
        elif self.mtbf is None and None in counted:
            yield "failures", "counted failures need all of `failures`, `among` and `during`", COUNTED

    @property
    def seconds(self) -> float:
        """Mean seconds between failures of one of them."""
        if self.failures and self.among and self.during:
            return self.among * self.during / self.failures
        return self.mtbf or float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The time from a failure until training goes on, in four parts."""

    detect: Seconds = field("until it is noticed", default=60.0)
    replace: Seconds = field("until another node is there", default=240.0)
    start: Seconds = field("until all processes run and are connected", default=240.0)
    load: Seconds | Literal["auto"] = field(
        "until the checkpoint is read back; auto: by the storage it was written to", default="auto"
    )

    def loading(self, seconds: float) -> Restart:
        """The same with a time to load where that is `auto`."""
        load = seconds if self.load == "auto" else self.load
        return Restart(detect=self.detect, replace=self.replace, start=self.start, load=load)

    def phases(self, *, replaced: bool, factor: float = 1.0) -> tuple[tuple[str, float], ...]:
        """(name, seconds) in their order; factor: how much longer all of them take.

        Raises:
            ValueError: the time to load is not known.
        """
        if self.load == "auto":
            raise ValueError("a restart with `load: auto` needs the time to load: restart.loading(seconds)")
        phases = (
            ("detect", self.detect),
            ("replace", self.replace if replaced else 0.0),
            ("start", self.start),
            ("load", self.load),
        )
        return tuple((name, factor * seconds) for name, seconds in phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """Nodes that stand by while others are repaired."""

    nodes: int | Literal["auto"] = field(
        "how many; auto: so many that in `percentile` of the time none is missing", default="auto", minimum=0
    )
    percentile: Ratio = field("of the time, with `nodes: auto`", default=0.99, exclusive_minimum=0.0, maximum=0.999999)
    repair: Seconds = field("until a node is back", default=48 * 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The range of nine of ten other sites, over the numbers of the file: [low, high]."""

    mtbf: tuple[Ratio, Ratio] = field(
        "times between failures", default=(1.0, 1.0), exclusive_minimum=0.0, maximum=1000.0, example="[18 %, 165 %]"
    )
    restart: tuple[Ratio, Ratio] = field(
        "times of a restart", default=(1.0, 1.0), exclusive_minimum=0.0, maximum=1000.0, example="[50 %, 200 %]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """A file of rates: parts, restart, spares, and how the failures are drawn."""

    hwsim: str = field("the format of the file: failures/1", default=FORMAT)
    name: str = field("whose they are, in a few words", default="")
    source: str = field("where its numbers are from", default="", record="for readers")
    ref: str = field("which document or measurement exactly", default="", record="for readers")
    date: str = field("when that was", default="", record="for readers")
    notes: str = field("anything worth knowing", default="", record="for readers")
    parts: Mapping[str, Part] = field("what fails, by name", example="{gpu: {mtbf: 80000 h}, host: {of: node, mtbf: 50000 h}}")
    restart: Restart = field("what a restart takes", default=Restart())
    spares: Spares = field("nodes that stand by", default=Spares())
    spread: Spread = field("how other sites differ (default: these rates are of this very machine)", default=Spread())
    shape: float = field(
        "of the times between failures: 1 by chance alone (exponential), below 1 they come in bursts (Weibull)",
        default=1.0,
        minimum=0.3,
        maximum=3.0,
    )
    runs: int = field("runs that are simulated for the percentiles", default=400, minimum=1, maximum=10_000)
    seed: int = field("another seed, other runs", default=1, minimum=0)
    place: Place = place_field()


def failures_schema() -> dict[str, Any]:
    """The JSON Schema of a file of rates."""
    from hwsim.spec.schema import json_schema  # only editors need it

    use = {"use": {"type": "string"}, "let": {"type": "object"}}
    return json_schema(Failures, header=FORMAT, ignore=use)


def load_failures(source: str | Path | Tree | None = None, relative_to: Path | None = None) -> Failures:
    """Rates of the library by name, of a file, or as a mapping; None: the library's usual ones.

    Raises:
        SpecError: there is no such file, or it has mistakes.

    >>> failures = load_failures()
    >>> round(failures.parts["gpu"].seconds / 3600)
    79230
    """
    mistakes = Mistakes()
    tree = source if isinstance(source, Tree) else read(find("failures", str(source or USUAL), relative_to))
    failures = read_failures(tree, mistakes)
    mistakes.raise_if_any()
    if failures is None:
        raise TypeError("no rates were read, and no mistake noted")
    return failures


def read_failures(tree: Tree, mistakes: Mistakes) -> Failures | None:
    """The rates that a tree writes; None once its mistakes are noted. A mapping inside another file needs no header."""
    if (tree.get("hwsim") is not None or not tree.is_mapping) and not check_header(tree, FORMAT, mistakes):
        return None
    before = len(mistakes)
    failures = decode(resolve(tree, mistakes, kind="failures"), Failures, mistakes, ignore=("use", "let"))
    if failures is None:
        return None
    if not failures.parts:
        mistakes.add(tree.key_place("parts"), "without a part nothing ever fails", "parts: {gpu: {mtbf: 80000 h}}")
    for name, part in failures.parts.items():
        for _, message, hint in part.problems():
            mistakes.add(part.place, f"{name}: {message}", hint)
    for key, (low, high) in (("mtbf", failures.spread.mtbf), ("restart", failures.spread.restart)):
        if not low <= 1.0 <= high:
            place = (tree.get("spread") or tree).key_place(key)
            mistakes.add(
                place, f"a spread goes from below 100 % to above, not from {low:.3g} to {high:.3g}", f"{key}: [50 %, 200 %]"
            )
    return failures if len(mistakes) == before else None
