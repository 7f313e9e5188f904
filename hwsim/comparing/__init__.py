"""Comparison of two runs by op and cause, and the contribution of each change of the files to their difference."""

from __future__ import annotations

from hwsim.comparing.comparison import Comparison, of_sides
from hwsim.comparing.run_comparison import compare
from hwsim.comparing.shapley import shares
from hwsim.comparing.sides import of_document, of_run

__all__ = ["Comparison", "compare", "of_document", "of_run", "of_sides", "shares"]
