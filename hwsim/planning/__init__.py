"""Planning: find the best machine, node count and parallel plan that meet requirements.

All options are evaluated in closed form; those near the best are simulated; rejected options keep their reasons."""

from __future__ import annotations

from hwsim.planning.answer import PlanAnswer
from hwsim.planning.deployments.answer import DeploymentAnswer
from hwsim.planning.question import Question, read_question
from hwsim.planning.solve import plan, plan_deployment

__all__ = ["DeploymentAnswer", "PlanAnswer", "Question", "plan", "plan_deployment", "read_question"]
