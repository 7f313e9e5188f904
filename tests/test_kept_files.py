"""What estimates keep of the files that they read: nothing that a file no longer says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hwsim
from hwsim.functions import estimate as module
from hwsim.spec import yaml_parser
from hwsim.spec.memo import FileMemo

MODEL = "hwsim: model/1\nkind: transformer\nname: small\nlayers: {layers}\nhidden: 1024\nheads: 8\nvocab: 32000\nsequence: 2048\n"
OLD = 1_000_000_000  # s: a file that was not just written


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FILES", FileMemo())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the contents that are read."""
    names: list[str] = []
    plain = yaml_parser.read_bytes

    def noticed(content: bytes, name: str = "<text>") -> object:
        names.append(name)
        return plain(content, name)

    monkeypatch.setattr(yaml_parser, "read_bytes", noticed)
    return names


def write(path: Path, layers: int, at: int = OLD) -> None:
    path.write_text(MODEL.replace("{layers}", str(layers)), "utf-8")
    os.utime(path, (at, at))


def decoding(path: Path) -> float:
    return hwsim.estimate("dgx-h100", path, infer="decode").seconds


def test_files_are_read_once_while_they_are_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "small.yaml", 12)
    first = decoding(tmp_path / "small.yaml")
    assert opened
    opened.clear()
    assert decoding(tmp_path / "small.yaml") == first
    assert not opened


def test_a_file_that_says_something_else_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    write(path, 12)
    small = decoding(path)
    write(path, 24, OLD + 1)  # as many bytes
    assert decoding(path) > 1.5 * small
    write(path, 12, OLD + 1)  # the same time again, another content: it was another file for a moment
    path.replace(tmp_path / "other.yaml")
    write(path, 12, OLD + 1)
    assert decoding(path) == small


def test_what_was_written_just_now_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(MODEL.replace("{layers}", "12"), "utf-8")
    decoding(path)
    opened.clear()
    decoding(path)
    assert opened


def test_a_name_means_another_file_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = []
    for folder, layers in (("one", 12), ("two", 24), ("one", 12)):
        (tmp_path / folder).mkdir(exist_ok=True)
        write(tmp_path / folder / "small.yaml", layers)
        monkeypatch.chdir(tmp_path / folder)
        times.append(decoding(Path("small.yaml")))
    assert times[0] == times[2]
    assert times[1] > 1.5 * times[0]
