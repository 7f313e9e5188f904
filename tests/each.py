"""One test of many values: a rule about every file of the library, or about every algorithm, which names all that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any

Test = Callable[..., None]


def each(named: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, in one test: starting and reporting a test takes longer than most rules."""
    names, cases = (named,) if isinstance(named, str) else named, list(values)

    def decorated(test: Test) -> Test:
        @wraps(test)
        def whole(**fixtures: Any) -> None:
            broken = []
            for case in cases:
                try:
                    test(**dict(zip(names, (case,) if isinstance(named, str) else case, strict=True)), **fixtures)
                except Exception as error:  # noqa: BLE001
                    error.add_note(f"{', '.join(names)}: {case}")
                    broken.append(error)
            if broken:
                raise ExceptionGroup(f"{len(broken)} of {len(cases)}", broken)

        left = [parameter for name, parameter in signature(test).parameters.items() if name not in names]
        whole.__signature__ = signature(test).replace(parameters=left)  # type: ignore[attr-defined]
        return whole

    return decorated
