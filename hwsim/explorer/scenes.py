"""Animations of the visible run for the page: the scenes of `hwsim simulate --animate`, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hwsim.api import Run
from hwsim.explorer.spans import Tints
from hwsim.formats import format_quantity
from hwsim.ops import OPS
from hwsim.ops.exchange import ExchangeOp
from hwsim.spec import SpecError, Tree
from hwsim.studies.session import Session
from hwsim.views.animate.clock import marks
from hwsim.views.animate.draw import SCENES
from hwsim.views.animate.scene import FOOT, HEIGHT, SECONDS, TOP, WIDTH, NothingMoves, Scene
from hwsim.views.animate.svg import svg_file
from hwsim.views.kit.figure import LIGHT, NIGHT

CALLED: Final = {
    "launches": "launch queue",
    "sends": "sends between devices",
    "requests": "individual requests",
    "lanes": "timeline",
}
EXPLICIT: Final = "explicit"
DIGITS: Final = 7  # decimals of a part of the time
Settings = Mapping[str, str]


class Player:
    """The runs of the animations: the visible run, or the same run in finer steps if a scene needs them.

    Args:
        session: session of both files.
        settings: settings of the visible run.
        run: visible run.
    """

    def __init__(self, session: Session, settings: Settings, run: Run) -> None:
        self._session, self._settings, self.run = session, settings, run
        workload = session.files[1]
        self._collectives = dict(_collectives(workload.get("program"), workload.get("let"), settings))
        self._steady = [path for path, steps in self._collectives.items() if steps != EXPLICIT]
        costs = run.timeline.flat.graph.costs if not any(row.times is not None for row in run.requests) else ()
        self._asked = next((cost.requests.device for cost in costs if cost.requests), "")

    def scene(self, kind: str) -> tuple[Scene, Run]:
        """Return a scene and its run; raise NothingMoves or SpecError."""
        run = self.run
        if kind == "requests" and self._asked:
            run = self._session.shown(self._settings, requests=[self._asked])
        elif kind == "sends" and self._steady:
            run = self._session.shown({**self._settings, **dict.fromkeys(self._steady, EXPLICIT)})
        return SCENES[kind](run), run

    def possible(self) -> Iterator[tuple[str, str]]:
        """Yield each kind of scene, and the reason why the run has no such scene ("" if it has one)."""
        for kind in CALLED:
            try:
                if not (kind == "sends" and self._steady) and not (kind == "requests" and self._asked):
                    SCENES[kind](self.run)
                yield kind, ""
            except NothingMoves as nothing:
                yield kind, str(nothing)

    def first(self, possible: Sequence[str]) -> str:
        """Return the most informative kind of scene."""
        told = ["launches", "requests", *(["sends"] if self._collectives else [])]
        return "lanes" if self.run.simulated.flat.graph.trainings else next((kind for kind in told if kind in possible), "lanes")


def _collectives(tree: Tree | None, let: Tree | None, settings: Settings, path: str = "program") -> Iterator[tuple[str, str]]:
    """Yield the path and the value of `steps` of each collective in a program."""
    if tree is None:
        return
    for key, value in tree.items():
        if key in OPS and issubclass(OPS[key], ExchangeOp):
            at, text = f"workload.{path}.{key}.steps", value.text("steps") or ""
            if text.startswith("$"):
                name = text.removeprefix("$")
                text = settings.get(name) or (let.text(name) if let is not None else "") or ""
            yield at, settings.get(at, text)
        else:
            yield from _collectives(value, let, settings, f"{path}.{key}")
    for index, value in enumerate(tree.elements() if tree.is_list else ()):
        yield from _collectives(value, let, settings, f"{path}.{index}")


def animated(player: Player, kind: str, tints: Tints, *, listed: bool = False, drawn: str = "") -> dict[str, Any]:
    """Return a scene for the page.

    Args:
        kind: one of SCENES; "": the most informative one.
        listed: whether to list the kinds that the run has; a missing kind is replaced.
        drawn: light or dark: add the SVG of `--animate`.
    """
    answer: dict[str, Any] = {"scene": None, "text": ""}
    if listed or kind not in CALLED:
        kinds = dict(player.possible())
        answer["kinds"] = [[choice, CALLED[choice], why] for choice, why in kinds.items()]
        kind = kind if kinds.get(kind) == "" else player.first([choice for choice, why in kinds.items() if not why])
    answer["kind"] = kind
    try:
        scene, run = player.scene(kind)
    except NothingMoves as nothing:
        return answer | {"text": str(nothing)}
    except SpecError as error:
        return answer | {"text": error.mistakes[0].message}
    if run is not player.run:
        finer, shown = (format_quantity(result.makespan_s, "s") for result in (run, player.run))
        how = "request by request" if kind == "requests" else "send by send"
        aggregated = "" if finer == shown else f"; the answer, with aggregated {kind}, is {shown}"
        answer["text"] = f"Simulated {how}, the run takes {finer}{aggregated}."
    if drawn:
        answer["svg"] = svg_file(scene, NIGHT if drawn == "dark" else LIGHT).decode()
    return answer | {"scene": columns(scene, tints)}


def columns(scene: Scene, tints: Tints) -> dict[str, Any]:
    """Return the columns of a scene, with times as parts of its duration.

    Args:
        tints: colours of the timeline.
    """
    length = (scene.end - scene.begin) or 1.0

    def part(at: float) -> float:
        return round((at - scene.begin) / length, DIGITS)

    ticks, _ = marks(scene)
    return {
        "title": scene.title,
        "below": scene.below,
        "begin": scene.begin,
        "end": scene.end,
        "seconds": SECONDS,
        "size": [WIDTH, HEIGHT, TOP, FOOT],
        "boxes": [list(box) for box in scene.boxes],
        "words": [list(word) for word in scene.words],
        "ways": [list(way) for way in scene.ways],
        "marks": [list(tick) for tick in ticks],
        "tints": [tints.of(name) for name in scene.names],
        "tokens": [
            [
                [part(knot.at) for knot in token.knots],
                [round(knot.x, 2) for knot in token.knots],
                [round(knot.y, 2) for knot in token.knots],
                round(token.wide, 2),
                round(token.high, 2),
                token.colour,
                [part(instant) for instant in token.busy],
                token.name,
                token.grows,
            ]
            for token in scene.tokens
        ],
    }
