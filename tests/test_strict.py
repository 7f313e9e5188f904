"""A machine of the library's parts alone: parts, counts and wiring are free, what a part can do is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hwsim.functions.files import refuse_invented
from hwsim.spec import SpecError
from hwsim.spec.library import library_root, names
from tests.command import hwsim
from tests.each import each

BOUGHT = """
hwsim: machine/1
name: mine
parts:
  cpu: {kind: cpu, use: ryzen-9-5950x}
  gpu: {kind: gpu, use: rtx-2080-ti, count: 2}
  hdd: {kind: hdd, use: hdd-7200rpm}
links:
  - {name: slots, between: [cpu, gpu*], kind: pcie, use: pcie3-x16, lanes: 8}
  - {name: sata, between: [cpu, hdd], kind: direct, use: sata3}
"""


def mistakes(text: str, folder: Path) -> list[str]:
    file = folder / "mine.yaml"
    file.write_text(text)
    try:
        refuse_invented(str(file))
    except SpecError as error:
        return [f"{mistake.place.line if mistake.place else 0}: {mistake.message}" for mistake in error.mistakes]
    return []


def test_parts_of_the_library_in_any_number_and_wiring(tmp_path: Path) -> None:
    assert mistakes(BOUGHT, tmp_path) == []


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("count: 2}", "count: 2, memory: {bandwidth: 5 TB/s}}", "6: 'gpu' changes `memory.bandwidth` of the library"),
        ("count: 2}", "count: 2, sms: 500}", "6: 'gpu' changes `sms` of the library"),
        ("use: sata3", "use: sata3, bandwidth: 6 GB/s", "10: link 'sata' changes `bandwidth` of the library"),
        ("use: hdd-7200rpm", "rpm: 90000", "7: 'hdd' is not a part of the library"),
        (", use: sata3", ", bandwidth: 6 GB/s", "10: link 'sata' is not a link of the library"),
        ("use: hdd-7200rpm", "use: hdd-7200rpm, class: ideal", "7: 'hdd' is ideal: it is as fast as its peak"),
        ("name: mine", "class: ideal", "3: `class: ideal` makes every part as fast as its peak"),
        (
            "count: 2}",
            "count: 2, memory: {bandwidth: $fast}}\nlet: {fast: 5 GHz}",
            "'gpu' changes `memory.bandwidth` of the library",
        ),
    ],
)
def test_what_nobody_can_buy_is_refused(before: str, after: str, message: str, tmp_path: Path) -> None:
    assert before in BOUGHT
    text = BOUGHT.replace(before, after)
    if "let:" in after:  # parameters stand at the top
        text = text.replace("\nlet: {fast: 5 GHz}", "").replace("name: mine", "let: {fast: 5 GHz}")
    found = mistakes(text, tmp_path)
    assert len(found) == 1
    assert found[0].endswith(message)


def test_a_part_of_a_file_is_no_part_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "fast.yaml").write_text("hwsim: part/1\nkind: gpu\nuse: rtx-2080-ti\nmemory: {bandwidth: 5 TB/s}\n")
    assert mistakes(BOUGHT.replace("use: rtx-2080-ti", "use: fast.yaml"), tmp_path) == [
        "4: 'gpu' changes `memory.bandwidth` of the library"
    ]


def test_a_machine_inside_a_machine_is_looked_into(tmp_path: Path) -> None:
    inner = BOUGHT.replace(
        "  hdd: {kind: hdd, use: hdd-7200rpm}", "  node: {kind: machine, use: desktop, parts: {cpu: {clock: 9 GHz}}}"
    )
    assert mistakes(inner.replace("  - {name: sata, between: [cpu, hdd], kind: direct, use: sata3}\n", ""), tmp_path) == [
        "7: 'cpu' changes `clock` of the library"
    ]


@each("name", names("machine"))
def test_machines_of_the_library_are_of_the_library(name: str) -> None:
    refuse_invented(str(library_root() / "machines" / f"{name}.yaml"))


def test_check_says_where(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(BOUGHT.replace("count: 2}", "count: 2, sms: 500}"))
    hwsim("check", file)
    refused = hwsim("check", "--strict-library", file, code=2)
    assert "mine.yaml:6:" in refused.stderr
