"""The JSON Schemas that editors use accept every file of the library and refuse what hwsim refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from hwsim.costs.prices import prices_schema
from hwsim.failures import failures_schema
from hwsim.machine.schema import machine_schema, part_schema
from hwsim.machine.scores import scores_schema
from hwsim.models.library import model_schema
from hwsim.planning.question import plan_schema
from hwsim.studies.file import study_schema
from hwsim.workload.schema import workload_schema

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "failures/1": failures_schema,
    "machine/1": machine_schema,
    "model/1": model_schema,
    "part/1": part_schema,
    "plan/1": plan_schema,
    "prices/1": prices_schema,
    "scores/1": scores_schema,
    "study/1": study_schema,
    "workload/1": workload_schema,
}
CLASSES = ROOT / "machines" / "classes"  # mappings of any depth, see tests/test_classes.py
FILES = sorted(
    path for path in [*(ROOT / "machines").rglob("*.yaml"), *(ROOT / "workloads").rglob("*.yaml")] if CLASSES not in path.parents
)
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[kind]())


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas in schemas are checked once each: those of `workload/1` stand there twenty times."""
    rules, seen = cast("dict[str, Any]", Draft202012Validator.VALIDATORS), set()
    inner = rules["$dynamicRef"]

    def once(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterator[Any]:
        text = json.dumps(instance)
        if text not in seen:
            seen.add(text)
            yield from inner(validator, reference, instance, schema)

    monkeypatch.setitem(rules, "$dynamicRef", once)
    Draft202012Validator.check_schema(validator(kind).schema)


def test_every_file_of_the_library_fits_its_schema() -> None:
    errors = {}
    for path in FILES:
        document = yaml.load(path.read_text(encoding="utf-8"), LOADER)
        if document.get("kind") not in ("runtime", "framework"):  # they have no schema of their own yet
            errors[path.relative_to(ROOT)] = [error.message for error in validator(document["hwsim"]).iter_errors(document)]
    assert len(errors) > 500
    assert {path: messages for path, messages in errors.items() if messages} == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"repeat": {"times": 2, "do": [{"matmull": {"m": 1, "n": 1, "k": 1}}]}},
        {"matmul": {"m": 1, "n": 1}},
        {"busy": {"time": "3 s", "tim": "3 s"}},
        {"busy": {"time": 3}},
        {"busy": {"time": "1 s"}, "wait": "all"},
    ],
)
def test_a_wrong_statement_does_not_fit(wrong: dict[str, Any]) -> None:
    document = {"hwsim": "workload/1", "program": [wrong]}
    assert list(validator("workload/1").iter_errors(document))


def test_a_question_of_the_page_fits_its_schema() -> None:
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    for block in page.split("```yaml\n")[1:]:
        question = yaml.safe_load(block.partition("```")[0])
        if question.get("hwsim") != "plan/1":
            continue
        assert not [error.message for error in validator("plan/1").iter_errors(question)]
        assert list(validator("plan/1").iter_errors({**question, "minimize": "cost"}))
