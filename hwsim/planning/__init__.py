"""Planning: which machine, how many, at what price: options in closed form, the near ones simulated, the others with reasons."""

from __future__ import annotations

from hwsim.planning.answer import Answer
from hwsim.planning.asking import plan
from hwsim.planning.options import Option
from hwsim.planning.question import Question, read_question
from hwsim.planning.reasons import Reason, Rejected

__all__ = ["Answer", "Option", "Question", "Reason", "Rejected", "plan", "read_question"]
