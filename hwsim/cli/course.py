"""`hwsim course`: exercises with numbers of their own for each student, and their check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hwsim.spec import Tree


@click.group("course")
def command() -> None:
    """Write exercises with different numbers for each student, and check the answers."""


@command.command("new")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--students", required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
              help="Text file with one name in each line.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the numbers in the students' tasks.")
@click.option("--key", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.md",
              help="Write the answers of all students into this file, outside DIR.")  # fmt: skip
def new(folder: Path, students: Path, seed: int, key: Path | None) -> None:
    """Write a sheet for each student into DIR: questions, and places for the answers. Sheets that exist are not changed."""
    from hwsim.explorer.course import exercises, sheet
    from hwsim.formats import format_quantity
    from hwsim.spec import tree_of
    from hwsim.spec.yaml_writer import to_yaml

    names = [line.strip() for line in students.read_text("utf-8-sig").splitlines() if line.strip()]
    if not names:
        raise click.UsageError(f"{students}: expected one name in each line, got none")
    if key is not None and folder.resolve() in key.resolve().parents:
        raise click.UsageError(f"--key: {key} is inside {folder}, which the students get")
    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{_file_name(name)}.yaml": name for name in names}
    if len(files) < len(names):
        raise click.UsageError(f"{students}: two names give the same file name; make them distinct")
    answers = []
    for file, name in files.items():
        if not file.exists():
            file.write_text(to_yaml(tree_of(sheet(name, seed))), encoding="utf-8", newline="\n")
        if key is not None:
            answers += [f"## {name}\n", "| question | answer | command |", "|---|---|---|"]
            for exercise in exercises(name, seed):
                time = format_quantity(exercise.run.makespan_s, "s")
                answers.append(f"| {exercise.question.name} | {time} | `{exercise.command}` |")
            answers.append("")
    click.echo(f"{folder}: sheets of {len(files)} students")
    if key is not None:
        key.write_text("\n".join([f"# Key, seed {seed}\n", *answers]), encoding="utf-8", newline="\n")
        click.echo(f"{key}: answers")
    click.echo(f"try: hwsim course check {next(iter(files))}")


@command.command("check")
@click.argument(
    "sheets", nargs=-1, required=True, metavar="SHEET...", type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
def check(sheets: tuple[Path, ...]) -> None:
    """Judge the answers of filled sheets: right, near, or wrong and why. The right answers are not printed."""
    from hwsim.cli.errors import print_errors
    from hwsim.explorer.course import exercises, judged
    from hwsim.spec import Mistakes, SpecError, read

    mistakes = Mistakes()
    with print_errors():
        for file in sheets:
            try:
                student, seed, given = _read(read(file))
            except SpecError as error:
                mistakes.extend(error.mistakes)
                continue
            verdicts = [(exercise.question.name, *judged(exercise, given.get(exercise.question.name, "")))
                        for exercise in exercises(student, seed)]  # fmt: skip
            right = sum(verdict == "right" for _, verdict, _ in verdicts)
            click.echo(f"{student}: {right} of {len(verdicts)} right")
            for name, _, words in verdicts:
                click.echo(f"  {name:<14}{words}")
        mistakes.raise_if_any()


def _file_name(student: str) -> str:
    return re.sub(r"[^\w-]+", "-", student).strip("-").lower() or "student"


def _read(sheet: Tree) -> tuple[str, int, dict[str, str]]:
    """Return student, seed and answers of a sheet; raise SpecError."""
    from hwsim.spec import SpecError

    student, seed, questions = sheet.text("student"), sheet.get("course"), sheet.get("questions")
    if not student or seed is None or not isinstance(seed.value, int) or questions is None or not questions.is_mapping:
        hint = "take a sheet that `hwsim course new` wrote, and fill in the answers"
        raise SpecError.of(sheet.place, "expected the sheet of a course, with `course`, `student` and `questions`", hint)
    answers = {name: question.get("answer") for name, question in questions.items()}
    return student, seed.value, {name: "" if found is None else str(found.plain()) for name, found in answers.items()}
