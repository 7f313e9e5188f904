"""`hwsim course`: numbers of its own for each student, a check that says right, near and why, and a key that is apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hwsim.explorer.course import MISSED, QUESTIONS, Exercise, exercises, judged
from tests.command import hwsim


@pytest.fixture(scope="module")
def ada() -> dict[str, Exercise]:
    return {exercise.question.name: exercise for exercise in exercises("Ada", 1)}


def seconds(text: str) -> float:
    """A time of a question."""
    number, unit = text.split()
    return float(number) * {"us": 1e-6, "ms": 1e-3}[unit]


def test_answers_are_those_by_hand(ada: dict[str, Exercise]) -> None:
    """Closed forms, from the numbers that the sheet has."""
    one = list(ada["asynchronous"].drawn.values())
    count, issue, add = int(one[0]), seconds(one[1]), seconds(one[2])
    assert ada["asynchronous"].run.makespan_s == pytest.approx(issue + count * add + 8e-6)
    one = list(ada["slow-python"].drawn.values())
    count, issue, add = int(one[0]), seconds(one[1]), seconds(one[2])
    assert ada["slow-python"].run.makespan_s == pytest.approx(count * issue + add + 8e-6)
    work = {key: int(value) for key, value in ada["shared-work"].drawn.items()}
    assert ada["shared-work"].run.makespan_s == pytest.approx(max(work["cpu"] * 65.52e-3, work["gpu"] * 16.57e-3), rel=1e-3)
    copies = int(ada["small-copies"].drawn["copies"])
    assert ada["small-copies"].run.makespan_s == pytest.approx(10e-3 + copies * 5e-6)
    size, rate = (float(text.split()[0]) for text in ada["ring"].drawn.values())
    assert ada["ring"].run.makespan_s == pytest.approx(2 * 7 / 8 * size * 1e6 / (3 * rate * 1e9), rel=1e-3)


def test_in_half_of_the_questions_intuition_fails_for_every_student() -> None:
    assert 2 * sum(question.fails for question in QUESTIONS) >= len(QUESTIONS)
    drawn = set()
    for student in ("Ada", "Charles", "Grace"):
        for exercise in exercises(student, 7):
            if exercise.question.fails:
                assert abs(exercise.theories[0][1] / exercise.run.makespan_s - 1) >= MISSED
            assert "{" not in exercise.text
        drawn.add(str([exercise.drawn for exercise in exercises(student, 7)]))
    assert len(drawn) == 3, "each student has other numbers"


def test_a_verdict_says_right_near_or_why(ada: dict[str, Exercise]) -> None:
    exercise = ada["overlap"]
    time = exercise.run.makespan_s
    assert judged(exercise, f"{time * 1.01} s")[0] == "right"
    assert judged(exercise, f"{time * 1e3 * 1.1:.1f} ms") == ("near", "near: less than 15 % too long")
    added = exercise.theories[0][1]
    assert judged(exercise, f"{added} s")[1].startswith("wrong: this is the time of all rows added: work that overlaps")
    assert judged(exercise, f"{time * 100} s")[1] == "wrong: too long by a factor of 1e+02"
    assert judged(exercise, "45")[0] == "unclear"
    assert judged(exercise, " ")[0] == "missing"


def test_sheets_are_written_filled_and_checked_and_the_key_is_apart(tmp_path: Path) -> None:
    names = tmp_path / "students.txt"
    names.write_text("Ada Lovelace\n\nCharles Babbage\n", encoding="utf-8")
    sheets, key = tmp_path / "sheets", tmp_path / "key.md"
    assert "inside" in hwsim("course", "new", sheets, "--students", names, "--key", sheets / "key.md", code=2).output
    said = hwsim("course", "new", sheets, "--students", names, "--key", key).output
    assert "sheets of 2 students" in said
    sheet = sheets / "ada-lovelace.yaml"
    text = sheet.read_text(encoding="utf-8")
    answers = re.findall(
        r"^\| ([\w-]+) \| ([^|]+) \| `hwsim", key.read_text(encoding="utf-8").split("## Charles")[0], re.MULTILINE
    )
    assert [name for name, _ in answers] == [question.name for question in QUESTIONS]
    for _, answer in answers:
        assert answer not in text, "no answer stands in a sheet"
        text = text.replace("answer: ''", f"answer: {answer}", 1)
    sheet.write_text(text, encoding="utf-8")
    checked = hwsim("course", "check", sheet, sheets / "charles-babbage.yaml").output
    assert "Ada Lovelace: 7 of 7 right" in checked
    assert "Charles Babbage: 0 of 7 right" in checked
    names_before = sheet.read_text(encoding="utf-8")
    hwsim("course", "new", sheets, "--students", names)
    assert sheet.read_text(encoding="utf-8") == names_before, "a filled sheet is not overwritten"
    sheet.write_text("hwsim: machine/1\n", encoding="utf-8")
    other = sheets / "charles-babbage.yaml"
    other.write_text(other.read_text(encoding="utf-8").replace("answer: ''", "answer: 45", 1), encoding="utf-8")
    checked = hwsim("course", "check", sheet, other, code=2).output
    assert "expected the sheet of a course" in checked
    assert "Charles Babbage: 0 of 7 right" in checked, "a sheet that cannot be read hides no other"
    assert "45 has no unit" in checked
    names.write_text("Ada\nAda\n", encoding="utf-8")
    assert "two names" in hwsim("course", "new", sheets, "--students", names, code=2).output
