"""Sensitivity: how far each unsure number moves an answer, where the order of two options changes, and what to measure first."""

from __future__ import annotations

from hwsim.sensitivities.analysis import sensitivity
from hwsim.sensitivities.answer import Sensitivity
from hwsim.sensitivities.choice import break_even, wrong_after, wrong_now
from hwsim.sensitivities.terms import Term, terms_of
from hwsim.sensitivities.tornado import Bar, tornado

__all__ = [
    "Bar", "Sensitivity", "Term", "break_even", "sensitivity", "terms_of", "tornado", "wrong_after", "wrong_now",
]  # fmt: skip
