"""Damaged files: whatever they say, reading them ends in a value or in a SpecError, never in anything else.

HWSIM_FUZZ is the number of files tried (10000 for a thorough run).
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from hwsim.spec import Mistakes, SpecError, Tree, decode, field, place_field, read_bytes, resolve, sources
from hwsim.spec.mistakes import Place
from hwsim.spec.paths import apply_set
from hwsim.units import Bytes, BytesPerSecond, Ratio, Seconds

COUNT = int(os.environ.get("HWSIM_FUZZ", "150"))
ROOT = Path(__file__).resolve().parent.parent

SAMPLES = [
    """hwsim: machine/1
name: a sample   # with a comment
let: {n: 4, size: 16 GB, twice: $n * 2}
source: made up
parts:
  cpu: &cpu {kind: cpu, count: 1, memory: {size: 64 GiB, bandwidth: {value: 40 GB/s, source: guess, ref: "none"}}}
  gpu: {kind: gpu, count: $n, memory: {size: $size / 2, bandwidth: 900 GB/s}, share: 95 %}
  other: *cpu
links:
  - {name: slots, between: [cpu, gpu*], kind: pcie, bandwidth: 16 GB/s, latency: 500 ns}
  - {between: [gpu0, gpu1], kind: nvlink}
""",
    """hwsim: workload/1
let: {algorithm: ring, n: 3}
program:
  each: gpu*
  do:
    - repeat: {times: $n, do: [
        {compute: {name: f, device: $self, flop: 640 GFLOP}},
        {send: {to: ($rank + 1) mod $ranks, bytes: ceil($n / 2) * 3 MB}} ]}
    - wait: all
expect: {makespan: 15 ms +- 1 %}
text: |
  several
  lines
folded: >-
  more
  lines
""",
]

TOKENS = (
    r"""
{|}|[|]|,|:|: |- |#|&a|*a|*gpu|!!int|!x|>|'|"|%|@|`|?|? |<<: *a|$|$n|$$|$self|${n}|($n|/ 0|mod|use: |min(
use: v100-sxm2-16gb|use: ../x.yaml|let: {n: $n}|let: {a: $b, b: $a}|null|~|true|no|0x|0o9|017|1e9|1e999|-1e999|.nan|.inf|1_0
12:30|2024-01-01|-|+|1 s|5 GBps|0 B|-5 %|\|"\u0000"|"\ud800"
kind: machine|value: 3|value|source: x|count: -1|=|é|😀
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
TOKENS += ["|", "\n", "\n  ", "\t", "---\n", "...\n", "\0", "\x7f", "\x85", "\u2028", "\ufeff", "\ud7ff", "'\n\n'"]
TOKENS += ["9" * 60, "[" * 50, "{a: " * 40, "- " * 120, "  " * 60, "n: " * 9]


def damage(data: bytes, random: random.Random) -> bytes:
    """The document with a few things wrong."""
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        data = random.choice((_flip, _insert, _insert, _swap, _indent, _cut, _repeat))(data, random)
    return data


def _flip(data: bytes, random: random.Random) -> bytes:
    if not data:
        return b"\xff"
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _insert(data: bytes, random: random.Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice(TOKENS).encode("utf-8", "surrogatepass") + data[at:]


def _swap(data: bytes, random: random.Random) -> bytes:
    words = data.split(b" ")
    a, b = random.randrange(len(words)), random.randrange(len(words))
    words[a], words[b] = words[b], words[a]
    return b" ".join(words)


def _indent(data: bytes, random: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    lines[at] = random.choice((b" " + lines[at], b"\t" + lines[at], lines[at][1:], lines[at].lstrip(), b"    " + lines[at]))
    return b"\n".join(lines)


def _cut(data: bytes, random: random.Random) -> bytes:
    a, b = sorted((random.randrange(len(data) + 1), random.randrange(len(data) + 1)))
    return data[:a] if random.random() < 0.3 else data[:a] + data[min(b, a + 20) :]


def _repeat(data: bytes, random: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    return b"\n".join([*lines[:at], lines[at], *lines[at:]])


@dataclass(frozen=True)
class Memory:
    size: Bytes = field("size", exclusive_minimum=0)
    bandwidth: BytesPerSecond = field("bandwidth")


@dataclass(frozen=True)
class Part:
    kind: str = field("kind")
    count: int = field("count", default=1, minimum=1)
    memory: Memory | None = field("memory", default=None)
    share: Ratio = field("share", default=1.0)
    rest: Tree | None = field("rest", default=None)


@dataclass(frozen=True)
class Link:
    between: tuple[str, str] | tuple[tuple[str, ...], tuple[str, ...]] = field("ends")
    kind: Literal["pcie", "nvlink"] = field("kind")
    name: str | None = field("name", default=None)
    bandwidth: BytesPerSecond | None = field("bandwidth", default=None)
    latency: Seconds = field("latency", default=0.0)


@dataclass(frozen=True)
class Document:
    hwsim: str = field("format")
    name: str = field("name", default="")
    let: Mapping[str, int | str | float | bool] = field("parameters", default_factory=dict)
    parts: Mapping[str, Part] = field("parts", default_factory=dict)
    links: tuple[Link, ...] = field("links", default=())
    program: Any = field("program", default=None)
    expect: Mapping[str, str] = field("expect", default_factory=dict)
    text: str = field("text", default="")
    folded: str = field("text", default="")
    place: Place = place_field()


def read_it_all(data: bytes, file: str) -> None:
    """Everything that this layer does with a file."""
    tree = read_bytes(data, file)
    mistakes = Mistakes()
    for path in ("n", "let.n", "machine.gpu.count", "machine.links.slots.latency", "workload.program.do.0.repeat.times"):
        with contextlib.suppress(SpecError):
            apply_set(tree, tree, path, "8")
    whole = resolve(tree, mistakes, kind="machine")
    sources(whole)
    decode(whole, Document, mistakes, sourced=True)
    mistakes.raise_if_any()


def seeds() -> list[tuple[str, bytes]]:
    files = [each for folder in ("machines", "workloads") for each in sorted((ROOT / folder).rglob("*.yaml"))]
    return [(f"sample{index}", text.encode()) for index, text in enumerate(SAMPLES)] + [
        (str(each), each.read_bytes()) for each in files
    ]


def test_a_sample_is_whole() -> None:
    read_it_all(SAMPLES[0].encode(), "sample0")


@pytest.mark.parametrize("part", range(10))
def test_damaged_files_are_values_or_mistakes(part: int) -> None:
    documents = seeds()
    refused = []
    for each in range(part * COUNT // 10, (part + 1) * COUNT // 10):
        chance = random.Random(each)
        file, data = chance.choice(documents)
        damaged = damage(data, chance)
        try:
            read_it_all(damaged, file)
        except SpecError as error:
            refused.append(error)
        except Exception as error:
            error.add_note(f"file {each}, from {file}: {damaged!r}")
            raise
    assert refused
    for refusal in refused:
        assert str(refusal)
        assert not any("\n" in mistake.message for mistake in refusal.mistakes)
