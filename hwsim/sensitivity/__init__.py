"""Sensitivity: how far each unsure number moves an answer, where the order of two options changes, and what to measure first."""

from __future__ import annotations

from hwsim.sensitivity.analysis import sensitivity
from hwsim.sensitivity.answer import Sensitivity
from hwsim.sensitivity.choice import break_even, wrong_after, wrong_now
from hwsim.sensitivity.terms import Term, terms_of
from hwsim.sensitivity.tornado import Bar, tornado

__all__ = [
    "Bar", "Sensitivity", "Term", "break_even", "sensitivity", "terms_of", "tornado", "wrong_after", "wrong_now",
]  # fmt: skip
