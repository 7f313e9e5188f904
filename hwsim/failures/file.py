"""Files of format `failures/1`: failure rates of the parts of a large job, and the time of a restart.

    parts: {gpu: {failures: 31, among: 1024, during: 90 day}, host: {of: node, mtbf: 50000 h}}
    restart: {detect: 1 min, replace: 4 min, start: 4 min, load: auto}
    spares: {nodes: auto, percentile: 99 %, repair: 48 h}

An `mtbf` is that of ONE part of its kind. The failure rate of a job is the sum of the rates of all its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from hwsim.records import dataclass
from hwsim.spec import Mistakes, Place, Problem, Tree, check_header, decode, field, find, place_field, read, resolve
from hwsim.units import Ratio, Seconds

FORMAT: Final = "failures/1"
COUNTED: Final = "failures: 3, among: 64, during: 90 day"  # example in hints
USUAL: Final = "meta-llama-3"  # default failure rates of the library


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The failure rate of one part: its mean time between failures, or a count of observed failures."""

    of: str = field("kind of part that fails: gpu, node or another kind (default: the name)", default="", example="node")
    mtbf: Seconds | None = field(
        "mean time between failures of one part", default=None, exclusive_minimum=0.0, maximum=1e13, example="50000 h"
    )
    failures: int | None = field("number of observed failures; alternative to `mtbf`", default=None, minimum=1, example="268")
    among: int | None = field("number of parts observed", default=None, minimum=1, example="16384")
    during: Seconds | None = field("duration of the observation", default=None, exclusive_minimum=0.0, example="54 day")
    replace: bool = field("the node is replaced and repaired (false: it restarts at once)", default=True)
    place: Place = place_field()

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid setting."""
        counted = (self.failures, self.among, self.during)
        if (self.mtbf is None) == all(value is None for value in counted):
            yield "mtbf", "a part has either an `mtbf` or counted failures", f"mtbf: 50000 h   or   {COUNTED}"
        elif self.mtbf is None and None in counted:
            yield "failures", "counted failures need all of `failures`, `among` and `during`", COUNTED

    @property
    def seconds(self) -> float:
        """Mean time between failures of one part (s)."""
        if self.failures and self.among and self.during:
            return self.among * self.during / self.failures
        return self.mtbf or float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """The time from a failure until the training continues, in four phases."""

    detect: Seconds = field("time until the failure is detected", default=60.0)
    replace: Seconds = field("time until a replacement node is available", default=240.0)
    start: Seconds = field("time until all processes run and are connected", default=240.0)
    load: Seconds | Literal["auto"] = field("time to read the checkpoint back; auto: computed from its storage", default="auto")

    def loading(self, seconds: float) -> Restart:
        """Return the restart with `seconds` as its load time where that is `auto`."""
        load = seconds if self.load == "auto" else self.load
        return Restart(detect=self.detect, replace=self.replace, start=self.start, load=load)

    def phases(self, *, replaced: bool, factor: float = 1.0) -> tuple[tuple[str, float], ...]:
        """Return (name, seconds) of each phase in order.

        Args:
            replaced: whether the node is replaced.
            factor: factor on all durations.

        Raises:
            ValueError: the load time is unknown.
        """
        if self.load == "auto":
            raise ValueError("a restart with `load: auto` needs the load time: restart.loading(seconds)")
        phases = (
            ("detect", self.detect),
            ("replace", self.replace if replaced else 0.0),
            ("start", self.start),
            ("load", self.load),
        )
        return tuple((name, factor * seconds) for name, seconds in phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """The spare nodes that replace nodes under repair."""

    nodes: int | Literal["auto"] = field(
        "number of spare nodes; auto: enough for `percentile` of the time", default="auto", minimum=0
    )
    percentile: Ratio = field(
        "share of time in which the spares suffice, with `nodes: auto`", default=0.99, exclusive_minimum=0.0, maximum=0.999999
    )
    repair: Seconds = field("time until a node returns from repair", default=48 * 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The 90 % interval of other sites, as factors [low, high] on the numbers of the file."""

    mtbf: tuple[Ratio, Ratio] = field(
        "factors on the MTBF: [low, high]", default=(1.0, 1.0), exclusive_minimum=0.0, maximum=1000.0, example="[18 %, 165 %]"
    )
    restart: tuple[Ratio, Ratio] = field(
        "factors on the restart: [low, high]", default=(1.0, 1.0), exclusive_minimum=0.0, maximum=1000.0, example="[50 %, 200 %]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """A file of failure rates: parts, restart, spares, and the distribution of failures."""

    hwsim: str = field("format of the file: failures/1", default=FORMAT)
    name: str = field("system or organization that the rates describe", default="")
    source: str = field("origin of the numbers", default="", record="for readers")
    ref: str = field("exact document or measurement", default="", record="for readers")
    date: str = field("date of the source", default="", record="for readers")
    notes: str = field("remarks", default="", record="for readers")
    parts: Mapping[str, Part] = field("rates of parts by name", example="{gpu: {mtbf: 80000 h}, host: {of: node, mtbf: 50000 h}}")
    restart: Restart = field("duration of a restart", default=Restart())
    spares: Spares = field("spare nodes", default=Spares())
    spread: Spread = field("uncertainty of the rates at another site (default: none)", default=Spread())
    shape: float = field(
        "Weibull shape of the times between failures: 1 is exponential; below 1, failures come in bursts",
        default=1.0,
        minimum=0.3,
        maximum=3.0,
    )
    runs: int = field("simulated runs, for the percentiles", default=400, minimum=1, maximum=10_000)
    seed: int = field("seed of the simulated runs", default=1, minimum=0)
    place: Place = place_field()


def failures_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of failure rates."""
    from hwsim.spec.schema import json_schema  # only editors need it

    use = {"use": {"type": "string"}, "let": {"type": "object"}}
    return json_schema(Failures, header=FORMAT, ignore=use)


def load_failures(source: str | Path | Tree | None = None, relative_to: Path | None = None) -> Failures:
    """Load failure rates.

    Args:
        source: name in the library, path of a file, or mapping; None: the library's default.
        relative_to: folder of relative paths.

    Raises:
        SpecError: the file does not exist or has mistakes.

    >>> failures = load_failures()
    >>> round(failures.parts["gpu"].seconds / 3600)
    79230
    """
    mistakes = Mistakes()
    tree = source if isinstance(source, Tree) else read(find("failures", str(source or USUAL), relative_to))
    failures = read_failures(tree, mistakes)
    mistakes.raise_if_any()
    if failures is None:
        raise TypeError("no failure rates were read, but no mistake was noted")
    return failures


def read_failures(tree: Tree, mistakes: Mistakes) -> Failures | None:
    """Return the rates in a tree, or None if mistakes were noted. A mapping inside another file needs no header."""
    if (tree.get("hwsim") is not None or not tree.is_mapping) and not check_header(tree, FORMAT, mistakes):
        return None
    before = len(mistakes)
    failures = decode(resolve(tree, mistakes, kind="failures"), Failures, mistakes, ignore=("use", "let"))
    if failures is None:
        return None
    if not failures.parts:
        mistakes.add(tree.key_place("parts"), "no parts: expected at least one part that fails", "parts: {gpu: {mtbf: 80000 h}}")
    for name, part in failures.parts.items():
        for _, message, hint in part.problems():
            mistakes.add(part.place, f"{name}: {message}", hint)
    for key, (low, high) in (("mtbf", failures.spread.mtbf), ("restart", failures.spread.restart)):
        if not low <= 1.0 <= high:
            place = (tree.get("spread") or tree).key_place(key)
            mistakes.add(place, f"expected a range that contains 1, got {low:.3g} to {high:.3g}", f"{key}: [50 %, 200 %]")
    return failures if len(mistakes) == before else None
