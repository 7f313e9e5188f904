"""A scene as data: boxes that stand, tokens that move, and the stretch of the run that is shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from hwsim.records import dataclass

WIDTH: Final = 720
HEIGHT: Final = 405
SECONDS: Final = 9.0  # that an animation lasts
TOP: Final = 62.0  # below the head
FOOT: Final = 362.0  # above the axis of time


class Knot(NamedTuple):
    """A place at an instant (s); between two knots a token moves straight and evenly."""

    at: float
    x: float
    y: float


class Box(NamedTuple):
    """A frame that stands still, with a name. colour: number of the house's colours, -1 for a frame."""

    x: float
    y: float
    wide: float
    high: float
    name: str = ""
    colour: int = -1


class Words(NamedTuple):
    """A text. anchor: start, middle or end."""

    x: float
    y: float
    text: str
    size: float = 14.0
    anchor: str = "start"
    soft: bool = False


class Way(NamedTuple):
    """A line on which tokens move."""

    x: float
    y: float
    to_x: float
    to_y: float


@dataclass(frozen=True, slots=True)
class Token:
    """A box that moves.

    Args:
        knots: in order of time; there from the first to the last. Two of one time are a jump.
        busy: (from, to) while it is worked on: filled; else it is pale.
        wide, high: at its full size; grows: whether its width grows from 0 over the time it is busy.
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
    """An animation as data.

    Args:
        title: what is seen; below: the run.
        begin, end: seconds of the run that are shown.
        names: what the colours stand for, in their order; empty where a colour is a place.
    """

    title: str
    below: str
    begin: float
    end: float
    boxes: tuple[Box, ...]
    words: tuple[Words, ...]
    tokens: tuple[Token, ...]
    ways: tuple[Way, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def slowed(self) -> float:
        """Seconds of the run in a second of the animation."""
        return (self.end - self.begin) / SECONDS


class NothingMoves(ValueError):
    """The run has nothing of what this animation shows; the message says what it needs."""
