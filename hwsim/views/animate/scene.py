"""An animation as data: fixed boxes, moving tokens, and the part of the run that is shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from hwsim.records import dataclass

WIDTH: Final = 720  # px
HEIGHT: Final = 405  # px
SECONDS: Final = 9.0  # duration of an animation (s)
TOP: Final = 62.0  # lower edge of the title (px)
FOOT: Final = 362.0  # upper edge of the time axis (px)


class Knot(NamedTuple):
    """A position at a time; between two knots a token moves at constant speed.

    Args:
        at: time (s).
        x, y: position (px).
    """

    at: float
    x: float
    y: float


class SceneBox(NamedTuple):
    """A fixed box with a name.

    Args:
        x, y: upper left corner (px).
        wide, high: size (px).
        name: name.
        colour: number of the fill colour; -1 for a frame only.
    """

    x: float
    y: float
    wide: float
    high: float
    name: str = ""
    colour: int = -1


class Words(NamedTuple):
    """A text.

    Args:
        x, y: position (px).
        text: text.
        size: font size (px).
        anchor: start, middle or end.
        soft: whether the text is grey.
    """

    x: float
    y: float
    text: str
    size: float = 14.0
    anchor: str = "start"
    soft: bool = False


class TokenPath(NamedTuple):
    """A line along which tokens move.

    Args:
        x, y: start (px).
        to_x, to_y: end (px).
    """

    x: float
    y: float
    to_x: float
    to_y: float


@dataclass(frozen=True, slots=True)
class Token:
    """A moving box.

    Args:
        knots: positions in order of time; the token is visible from the first to the last. Two knots with one time are a jump.
        wide, high: full size (px).
        colour: number of the colour.
        busy: (start, end) of service (s), during which it is filled; otherwise it is pale.
        name: text on the box.
        grows: whether its width grows from 0 during service.
    """

    knots: tuple[Knot, ...]
    wide: float
    high: float
    colour: int
    busy: tuple[float, float]
    name: str = ""
    grows: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """An animation.

    Args:
        title: title.
        below: line below the title, with the name of the run.
        begin, end: part of the run that is shown (s).
        boxes, words, tokens, ways: elements.
        names: names of the colours in order; empty if a colour is a position.
    """

    title: str
    below: str
    begin: float
    end: float
    boxes: tuple[SceneBox, ...]
    words: tuple[Words, ...]
    tokens: tuple[Token, ...]
    ways: tuple[TokenPath, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def slowed(self) -> float:
        """Seconds of the run per second of the animation."""
        return (self.end - self.begin) / SECONDS


class NothingMoves(ValueError):
    """Raised if the run has nothing to animate; the message names the requirement."""
