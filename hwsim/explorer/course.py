"""Exercises with numbers of their own for each student, and a check that says right, near, or why not: `hwsim course`.

The numbers are drawn from a seed, the name of the student and the name of the question: the key is computed again from the same
three. At least half of the questions are drawn so that adding all times misses the answer by 20 %.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from hwsim.api import Run, simulate
from hwsim.explorer.answer import answer
from hwsim.explorer.spans import Tints
from hwsim.records import dataclass
from hwsim.spec import read_text
from hwsim.units import TIME, UnitError, parse_as

RIGHT: Final = 0.03  # relative error up to which an answer is right
NEAR: Final = 0.15  # up to which it is near
MISSED: Final = 0.2  # least error of adding all times, in a question in which intuition fails
DRAWS: Final = 200  # attempts to draw numbers for which it fails
ALL_ADDED: Final = 0  # index of the time of all rows added


@dataclass(frozen=True, slots=True)
class Question:
    """An exercise with drawn numbers.

    Args:
        name: name in the sheet.
        ask: question; {path} is replaced by the value drawn, with the last word of each path.
        machine: machine of the library.
        workload: workload of the library.
        drawn: possible values by path for `--set`.
        fails: whether adding all times gives a wrong answer.
    """

    name: str
    ask: str
    machine: str
    workload: str
    drawn: Mapping[str, Sequence[str]]
    fails: bool


def _questions() -> Iterator[Question]:
    tree = read_text(files("hwsim.explorer").joinpath("course.yaml").read_text("utf-8"), "course.yaml")
    for name, found in tree.items():
        entry: dict[str, Any] = {key: value.value for key, value in found.items()}
        drawn = {path: tuple(str(value.value) for value in values.elements()) for path, values in entry["drawn"].items()}
        yield Question(name, **{**entry, "drawn": drawn})


QUESTIONS: Final = tuple(_questions())


@dataclass(frozen=True, slots=True)
class Exercise:
    """A question with the numbers of one student, and its run."""

    question: Question
    drawn: Mapping[str, str]
    run: Run

    @property
    def text(self) -> str:
        """The question with its numbers."""
        return self.question.ask.format(**{path.rpartition(".")[2]: value for path, value in self.drawn.items()})

    @property
    def theories(self) -> list[tuple[str, float]]:
        """Wrong times that a student may have computed (s), with a description of the mistake."""
        found = answer(self.run, Tints(), pixels=100, part=(0.0, 1.0))["theories"]
        return [(str(name), float(seconds)) for name, seconds in found]

    @property
    def command(self) -> str:
        """The command that simulates it."""
        words = " ".join(f"--set '{path}={value}'" for path, value in self.drawn.items())
        return f"hwsim simulate {self.question.machine} {self.question.workload} --no-expect {words}"


def exercises(student: str, seed: int) -> Iterator[Exercise]:
    """Yield the exercises of a student."""
    for question in QUESTIONS:
        yield _drawn(question, random.Random(f"{seed}/{student}/{question.name}"))


def _drawn(question: Question, dice: random.Random) -> Exercise:
    for _ in range(DRAWS):
        drawn = {path: dice.choice(values) for path, values in question.drawn.items()}
        run = simulate(question.machine, question.workload, set=drawn, expect=False)
        exercise = Exercise(question, drawn, run)
        if not question.fails or abs(exercise.theories[ALL_ADDED][1] / run.makespan_s - 1.0) >= MISSED:
            return exercise
    raise AssertionError(question.name)


def sheet(student: str, seed: int) -> dict[str, Any]:
    """Return the sheet of a student, with places for the answers."""
    questions = {exercise.question.name: {"ask": exercise.text, "answer": ""} for exercise in exercises(student, seed)}
    return {"course": seed, "student": student, "questions": questions}


def judged(exercise: Exercise, text: str) -> tuple[str, str]:
    """Return the verdict on an answer (right, near, wrong, missing, unclear) and a text that does not reveal the right answer."""
    if not text.strip():
        return "missing", "no answer"
    try:
        seconds = parse_as(text, TIME)
    except UnitError as error:
        return "unclear", f"{error}; write a time, such as '45 ms'"
    off = seconds / exercise.run.makespan_s - 1.0
    if abs(off) <= RIGHT:
        return "right", "right"
    if abs(off) <= NEAR:
        return "near", f"near: less than {NEAR:.0%} too {'long' if off > 0 else 'short'}".replace("%", " %")
    for name, other in exercise.theories:
        if abs(seconds / other - 1.0) <= RIGHT:
            return "wrong", f"wrong: this is the time of {name}"
    return "wrong", f"wrong: too {'long' if off > 0 else 'short'} by a factor of {max(off + 1.0, 1.0 / max(off + 1.0, 1e-9)):.2g}"
