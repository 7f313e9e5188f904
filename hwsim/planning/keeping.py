"""The journal of a plan: simulations by the number of their option, so that a run that was ended goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from hwsim.planning.question import Question
from hwsim.planning.running import Row
from hwsim.records import dataclass
from hwsim.spec import Mistakes, resolve
from hwsim.studies.journal import Journal
from hwsim.version import __version__


@dataclass(frozen=True, slots=True)
class Notes:
    """Simulations of earlier runs, and where further ones are kept."""

    rows: Mapping[int, Row]
    journal: Journal

    def add(self, number: int, row: Row) -> None:
        """Keep the simulation of an option."""
        self.journal.add(number, {"plan": row})


@contextmanager
def kept(path: str | Path, question: Question) -> Iterator[Notes]:
    """The journal of a question.

    Raises:
        SpecError: the file is the journal of something else.
    """
    with Journal(path, {"study": fingerprint(question), "version": __version__}) as journal:
        yield Notes({number: row["plan"] for number, row in journal.done.items() if "plan" in row}, journal)


def fingerprint(question: Question) -> str:
    """Hash of a question and of the files behind it."""
    mistakes = Mistakes()
    parts: list[Any] = [repr(question.keys), repr(question.varied)]
    parts += [(name, resolve(tree, mistakes, kind="machine").plain()) for name, tree in question.machines]
    parts += [(name, resolve(tree, mistakes, kind="workload").plain()) for name, tree in question.workloads.items()]
    return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()[:16]
