"""Recorded requests: every form, every mistake with its line, and files of values."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwsim.spec import NOWHERE, Place, SpecError
from hwsim.ticks import FEMTO
from hwsim.workload.load.draws import Values
from hwsim.workload.load.keys import CountDraw, SizeDraw, TimeDraw
from hwsim.workload.load.traces import read_trace
from tests.each import each

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2024-05-10 00:00:00.009930+00:00,2162,5
"""
BURST = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45.5,GPT-4,1087,230,1317,Conversation log
"""


def lines(*rows: dict[str, object]) -> str:
    return "\n".join(json.dumps(row) for row in rows) + "\n"


MOONCAKE = lines(
    {"timestamp": 0, "input_length": 1100, "output_length": 52, "hash_ids": [0, 1, 2]},
    {"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [0, 9]},
    {"timestamp": 1000, "input_length": 513, "output_length": 7, "hash_ids": [0, 5]},
)


def written(folder: Path, text: str | bytes, name: str = "trace.csv") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_every_form_is_read(tmp_path: Path) -> None:
    own = read_trace(written(tmp_path, "arrival,prompt,output,other\n2.5,7,1,x\n0.5,100,5,y\n"), NOWHERE, tokens=True)
    assert own.arrival.tolist() == [FEMTO // 2, 5 * FEMTO // 2]
    assert (own.prompt.tolist(), own.output.tolist(), own.lines.tolist(), own.block) == ([100, 7], [5, 1], [3, 2], 0)
    azure = read_trace(written(tmp_path, AZURE[: AZURE.index("2024")]), NOWHERE, tokens=True)
    assert azure.arrival.tolist() == [0, 4_314_579 * FEMTO // 10**6]
    assert azure.output.tolist() == [44, 109]
    assert len(read_trace(written(tmp_path, AZURE), NOWHERE, tokens=True)) == 3
    burst = read_trace(written(tmp_path, BURST), NOWHERE, tokens=True)
    assert (burst.arrival.tolist(), burst.prompt.tolist()) == ([5 * FEMTO, 91 * FEMTO // 2], [472, 1087])


def test_blocks_of_prompts_follow_their_requests(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, MOONCAKE, "conversation.jsonl"), NOWHERE, tokens=True)
    assert trace.arrival.tolist() == [0, FEMTO, 3 * FEMTO]
    assert [trace.prefix(number) for number in range(3)] == [[0, 1, 2], [0, 5], [0, 9]]
    assert trace.block == 512
    assert trace.lines.tolist() == [1, 3, 2]


def test_a_service_needs_arrivals_alone(tmp_path: Path) -> None:
    name = written(tmp_path, "arrival\n0\n1.5\n")
    trace = read_trace(name, NOWHERE, tokens=False)
    assert trace.arrival.tolist() == [0, 3 * FEMTO // 2]
    with pytest.raises(SpecError, match="lacks the columns arrival, prompt and output"):
        read_trace(name, NOWHERE, tokens=True)


def test_paths_start_from_the_workload_and_lines_may_be_fewer(tmp_path: Path) -> None:
    written(tmp_path, "\ufeffarrival,prompt,output\r\n0,1,1\r\n\r\n1,2,2\r\n2,oops,2\r\n")
    place = Place(str(tmp_path / "chat.yaml"), 3, 5)
    assert len(read_trace("trace.csv", place, tokens=True, most=2)) == 2
    with pytest.raises(SpecError, match=r"line 5 of the trace 'trace.csv' is not a request: 2, oops, 2") as error:
        read_trace("trace.csv", place, tokens=True)
    assert next(iter(error.value.mistakes)).place == place


@each(
    ("text", "said"),
    [
        ("", "lacks the columns"),
        ("arrival,prompt,output\n", "contains no requests"),
        ("arrival,prompt,output\n-1,2,3\n", "line 2 "),
        ("arrival,prompt,output\n1,0,3\n", "line 2 "),
        ("arrival,prompt,output\n1,2,nan\n", "line 2 "),
        ("arrival,prompt,output\ninf,2,3\n", "line 2 "),
        ("arrival,prompt,output\n1e9,2,3\n", "line 2 "),
        ("arrival,prompt,output\n1,2e9,3\n", "line 2 "),
        ("arrival,prompt,output\n0,1,1\n1,2\n", "line 3 "),
        ("arrival,prompt,output\n0,1,1\n,,5\n", "line 3 "),
        ('arrival,prompt,output\n0,"1\n', "line 3 |cannot be read|line 2 "),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", "line 2 "),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,1,1\n2023-11-16 17:00:00,1,1\n", "line 3 "),
        (b"arrival,prompt,output\n\xff\xfe,1,1\n", "cannot be read: UnicodeDecodeError"),
        ('{"timestamp": 0}\n', "line 1 "),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1}\n{"timestamp"\n', "line 2 "),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}\n', "line 1 "),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": 5}\n', "line 1 "),
        ('{"timestamp": true, "input_length": 1, "output_length": 1}\n[1]\n', "line [12] "),
        ('{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [99999999999999999999]}\n', "line 1 "),
        ("{" * 5000 + "\n", "line 1 "),
        ("arrival,prompt,output\n0,100,10\n1,100.5,10\n", "line 3 "),  # half a token
        ("arrival,prompt,output\n0,100,10\n2023-11-16 18:17:03,100,10\n", "line 3 "),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,100,10\n5,100,10\n", "line 3 "),
        *(('{"timestamp": 0, "input_length": 5, "output_length": 5}\n{"timestamp": %s}\n' % ("9" * many), "line 2 ")
          for many in (400, 5000)),
    ],
)  # fmt: skip
def test_what_is_no_trace_is_said_with_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read_trace(written(tmp_path, text), NOWHERE, tokens=True)


def test_a_trace_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    for name in ("none.csv", str(tmp_path)):
        with pytest.raises(SpecError, match="cannot be read"):
            read_trace(name, NOWHERE, tokens=True)


@given(st.text(max_size=200))
def test_no_text_is_a_defect(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    for start in ("", "arrival,prompt,output\n", "{"):
        path.write_text(start + text, encoding="utf-8", errors="replace")
        with suppress(SpecError):
            assert len(read_trace(str(path), NOWHERE, tokens=True))


def test_values_are_of_a_file_or_a_list(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "web.yaml"), 1, 1)
    written(tmp_path, "# measured\n20 ms\n\n0.5\n3 us\n", "times.txt")
    assert TimeDraw(values="times.txt", place=place).distribution == Values((3e-6, 0.02, 0.5))
    assert SizeDraw(values=(3.0, 1.0)).distribution == Values((1.0, 3.0))
    for text, said in (("4 GB\n", "line 1 "), ("1\nx\n", "line 2 "), ("-1\n", "line 1 "), ("# none\n", "contains no values")):
        written(tmp_path, text, "times.txt")
        with pytest.raises(SpecError, match=said):
            _ = TimeDraw(values="times.txt", place=place).distribution
    with pytest.raises(SpecError, match="cannot be read"):
        _ = CountDraw(values="none.txt", place=place).distribution


def test_published_traces_are_read_as_they_are(reference_data: Path) -> None:
    folder = reference_data / "validation" / "serving" / "arrivals"
    azure = read_trace(str(folder / "azure2023_conv.csv"), NOWHERE, tokens=True)
    mooncake = read_trace(str(folder / "mooncake_conversation.csv"), NOWHERE, tokens=True)
    assert (len(azure), len(mooncake)) == (19_366, 12_031)
    assert azure.arrival[-1] / FEMTO == pytest.approx(3501.7, abs=0.1)
    assert bool((np.diff(mooncake.arrival) >= 0).all())
