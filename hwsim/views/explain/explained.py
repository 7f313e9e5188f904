"""A run with its explanation, as one answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from hwsim.records import dataclass
from hwsim.results.result import Result
from hwsim.views.explain.explanation import Explanation
from hwsim.views.kit.shown import Drawn


@dataclass(frozen=True, slots=True)
class Explained(Drawn):
    """Why a run takes as long as it does: `sentences`, causes along the critical path, derivations, and what would help.

    Args:
        run: what is explained.
        explanation: all of it as data (`hwsim.views.explain.explanation.Explanation`).
    """

    run: Result
    explanation: Explanation
    TABLE: ClassVar = "accounting"
    COLUMNS: ClassVar = ("cause", "time_s", "share")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences: what hides behind what, and what helps most."""
        return self.explanation.sentences

    def to_json(self) -> dict[str, Any]:
        """The document `hwsim: explain/1`; tables: accounting, critical_path, activities, derivations, what_if."""
        from hwsim.views.explain.document import as_dict

        return as_dict(self.run, self.explanation)

    def figure(self, suffix: str) -> Iterable[bytes]:
        """The critical path."""
        from hwsim.views.explain.draw import render

        return render(self.run, self.explanation, suffix)

    def __str__(self) -> str:
        from hwsim.views.explain.say import text

        return text(self.run, self.explanation)
