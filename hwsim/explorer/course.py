"""Exercises with numbers of their own for each student, and a check that says right, near, or why not: `hwsim course`.

The numbers are drawn from a seed, the name of the student and the name of the question: the key is computed again from the same
three. At least half of the questions are drawn so that adding all times misses the answer by 20 %.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from hwsim.api import Run, simulate
from hwsim.explorer.answer import answer
from hwsim.explorer.spans import Tints
from hwsim.records import dataclass
from hwsim.units import TIME, UnitError, parse_as

RIGHT: Final = 0.03  # relative error up to which an answer is right
NEAR: Final = 0.15  # up to which it is near
MISSED: Final = 0.2  # least error of adding all times, in a question in which intuition fails
DRAWS: Final = 200
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
        settings: other settings.
    """

    name: str
    ask: str
    machine: str
    workload: str
    drawn: Mapping[str, Sequence[str]]
    fails: bool
    settings: Mapping[str, str] = field(default_factory=dict)


def _times(*numbers: int) -> tuple[str, ...]:
    return tuple(f"{number} us" for number in numbers)


RUNTIME: Final = "workload.runtime"
ADD: Final = "workload.program.0.repeat.do.0.busy.time"
SLOT: Final = "machine.links.slot.bandwidth"
COUNTS: Final = tuple(str(count) for count in range(200, 1600, 100))
QUESTIONS: Final = (
    Question(
        "asynchronous",
        "Python issues {n} additions and waits once, at the end. Issuing one takes {dispatch}, computing it {time}, and "
        "returning the result to Python 8 us. How long does the program take?",
        "d2l-laptop",
        "d2l/async-loop",
        {"n": COUNTS, f"{RUNTIME}.dispatch": _times(6, 8, 10, 12, 14), ADD: _times(18, 22, 25, 30, 36, 40)},
        fails=True,
    ),
    Question(
        "slow-python",
        "A faster CPU computes an addition in {time}, but Python still needs {dispatch} to issue one and 8 us to return the last "
        "result. How long do {n} additions take, with one wait at the end?",
        "d2l-laptop",
        "d2l/async-loop",
        {"n": COUNTS, f"{RUNTIME}.dispatch": _times(15, 18, 21, 24, 28), ADD: _times(5, 7, 9, 11)},
        fails=True,
    ),
    Question(
        "overlap",
        "A GPU computes {times} matmuls of 2000 x 2000, 16.57 ms each. Each result of 16 MB is copied to the CPU over a link of "
        "{bandwidth}, while the next matmuls run. How long does it take?",
        "d2l-gpu-workstation",
        "d2l/copy-overlap",
        {"times": tuple(map(str, range(5, 30))), SLOT: ("0.5 GB/s", "0.6 GB/s", "0.8 GB/s", "1.2 GB/s", "1.5 GB/s", "2 GB/s")},
        fails=True,
    ),
    Question(
        "shared-work",
        "The CPU computes {cpu} matmuls of 2000 x 2000, 65.52 ms each, and the GPU {gpu}, 16.57 ms each, at the same time. "
        "How long does it take?",
        "d2l-gpu-workstation",
        "d2l/cpu-gpu-split",
        {"cpu": tuple(map(str, range(2, 9))), "gpu": tuple(map(str, range(8, 33)))},
        fails=True,
    ),
    Question(
        "small-copies",
        "160 MB cross a PCIe link of 16 GB/s in {copies} copies, one after the other. Setting up a copy takes 5 us. "
        "How long does it take?",
        "d2l-4gpu-pcie",
        "d2l/few-large-transfers",
        {"copies": tuple(str(1000 * count) for count in range(2, 20))},
        fails=False,
    ),
    Question(
        "random-words",
        "{words} words of 8 bytes are read from DRAM at random addresses, 100 ns each, and then as many in one burst, 0.2 ns "
        "each. How long do both take together?",
        "d2l-memory",
        "d2l/dram-random-vs-burst",
        {"words": tuple(str(100_000 * count) for count in range(2, 30))},
        fails=False,
    ),
    Question(
        "ring",
        "Eight GPUs sum {bytes} in two rings, each in one direction: one ring has one NVLink of {bandwidth} between neighbours, "
        "the other has two. How long does it take?",
        "d2l-8gpu-nvlink",
        "d2l/two-nvlink-rings",
        {
            "bytes": tuple(f"{size} MB" for size in range(80, 400, 20)),
            "machine.links.nvlink.bandwidth": ("12 GB/s", "18 GB/s", "25 GB/s"),
        },
        fails=False,
    ),
)


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
        """Times that a student may have computed instead (s), with the mistake in words."""
        found = answer(self.run, Tints(), pixels=100, part=(0.0, 1.0))["theories"]
        return [(str(name), float(seconds)) for name, seconds in found]

    @property
    def command(self) -> str:
        """The command that simulates it."""
        changed = {**self.question.settings, **self.drawn}
        words = " ".join(f"--set '{path}={value}'" for path, value in changed.items())
        return f"hwsim simulate {self.question.machine} {self.question.workload} --no-expect {words}"


def exercises(student: str, seed: int) -> Iterator[Exercise]:
    """Yield the exercises of a student."""
    for question in QUESTIONS:
        yield _drawn(question, random.Random(f"{seed}/{student}/{question.name}"))


def _drawn(question: Question, dice: random.Random) -> Exercise:
    for _ in range(DRAWS):
        drawn = {path: dice.choice(values) for path, values in question.drawn.items()}
        run = simulate(question.machine, question.workload, set={**question.settings, **drawn}, expect=False)
        exercise = Exercise(question, drawn, run)
        if not question.fails or abs(exercise.theories[ALL_ADDED][1] / run.makespan_s - 1.0) >= MISSED:
            return exercise
    raise AssertionError(question.name)


def sheet(student: str, seed: int) -> dict[str, Any]:
    """Return the sheet of a student, with places for the answers."""
    questions = {exercise.question.name: {"ask": exercise.text, "answer": ""} for exercise in exercises(student, seed)}
    return {"course": seed, "student": student, "questions": questions}


def judged(exercise: Exercise, text: str) -> tuple[str, str]:
    """Return the verdict on an answer (right, near, wrong, missing, unclear), and what it says, without the right answer."""
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
