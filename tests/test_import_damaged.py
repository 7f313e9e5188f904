"""Files of every format that is imported, cut off, in pieces or with other bytes: they are read, or refused with one mistake."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hwsim.functions.files import check_tree
from hwsim.importers import text
from hwsim.importers.formats import FORMATS, read
from hwsim.models.configs import as_tree, read_config
from hwsim.models.library import read_model
from hwsim.spec import SpecError, read_text
from hwsim_calibrate.logs import fit_logs, read_log
from tests.calibrate_logs import FOLDER, LOGS, ask_of
from tests.fuzz.of_tools import CONFIG, chakra_file, kineto_file, nsys_file

WHOLE = {
    "kineto": ("a.json", kineto_file()), "nsys": ("a.sqlite", nsys_file()), "chakra": ("a.0.et", chakra_file()),
    "huggingface": ("config.json", json.dumps(CONFIG, indent=1).encode()),
    **{tool: ("log", (FOLDER / name).read_bytes()) for tool, name in LOGS.items()},
}  # fmt: skip
ODD = [
    word.encode() for word in ("nan", "inf", "-1", "0", "1e400", "9" * 5000, "", '"', "{", "}", "\x1b[31m", "\u2028", "1,5", "[]")
]


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with an end cut off, a word in the place of others, a piece twice or two in the other order."""
    for _ in range(draw(st.integers(1, 3))):
        first, second, third = sorted(draw(st.integers(0, len(data))) for _ in range(3))
        match draw(st.sampled_from(["end", "word", "bytes", "twice", "shuffle"])):
            case "end":
                data = data[:third]
            case "word":
                data = data[:first] + draw(st.sampled_from(ODD)) + data[min(second, first + 40) :]
            case "bytes":
                data = data[:first] + draw(st.binary(max_size=3)) + data[first + draw(st.integers(0, 3)) :]
            case "twice":
                data = data[:second] + data[first:]
            case _:
                data = data[:first] + data[second:third] + data[first:second] + data[third:]
    return data


def imported(tool: str, path: Path) -> None:
    """Read a file as `hwsim import` does; of a log, the numbers that it became can be written."""
    if tool in FORMATS:
        read(tool, [path])
    elif tool == "huggingface":
        read_model(as_tree(read_config(path)))
    else:
        result = fit_logs(tool, [read_log(path)], ask_of(tool))
        json.dumps(result.to_json(), allow_nan=False)
        assert all(math.isfinite(row.error) for row in result.rows)
        check_tree(read_text(result.yaml()))


@pytest.mark.parametrize("tool", WHOLE)
def test_damage_anywhere_is_read_or_refused_in_words(tool: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("damaged") / WHOLE[tool][0]

    @settings(max_examples=40, deadline=None)
    @given(damaged(WHOLE[tool][1]), st.sampled_from([100, 1 << 20]))
    def hold(data: bytes, chunk: int) -> None:
        path.write_bytes(data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text, "CHUNK", chunk)
            try:
                imported(tool, path)
            except SpecError as error:
                said = [str(mistake.message) for mistake in error.mistakes]
            else:
                said = ["it is read"]
        assert said
        assert all(len(message) < 1000 and "\n" not in message for message in said)

    hold()
