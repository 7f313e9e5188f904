"""What the GPUs of a training hold: all the time, and from a forward pass to its backward pass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import Buffer, Mark
from hwsim.models import activations, training_memory
from hwsim.workload.training.teams import Teams


def hold(
    teams: Teams,
    builder: GraphBuilder,
    number: int,
    steps: int,
    computed: Mapping[tuple[int, int], Sequence[int]],
    lives: Mapping[tuple[int, int, int], Sequence[int]],
    *,
    shared: bool = False,
) -> None:
    """Buffers of the first copy, on the first device of each kind in each stage; where others may be on the same devices, on all.

    Args:
        number: of the block, which runs `steps` times; computed: what each team (stage, copy) computes in it.
        lives: by (stage, micro-batch, chunk) the ops that need the activations of a turn; of all copies those of the first.
    """
    plan = teams.laid.plan
    attention = teams.framework.attention
    one = activations(teams.laid.transformer, plan, teams.laid.sequence, attention)
    whole = activations(teams.laid.transformer, replace(plan, recompute="none"), teams.laid.sequence, attention)
    for stage in range(len(teams.stages)):
        team = teams.layout.team(stage, teams.copies[0])
        every = (
            [each for copy in teams.copies for each in teams.layout.team(stage, copy)] if shared or teams.kinds.of else team[:1]
        )
        devices = every if shared else list({teams.kinds.of.get(each, 0): each for each in reversed(every)}.values())[::-1]
        first = computed[stage, teams.copies[0]][0]
        found = training_memory(teams.laid, attention, stage, teams.framework.gradient)
        always = [("weights", found.weights), ("gradients", found.gradients), ("optimizer states", found.optimizer),
                  ("buffers", found.buffers)]  # fmt: skip
        for device, (value, size) in product(devices, always):
            if size > 0:
                mark = Mark(number, first)
                builder.buffer(Buffer(value, "training", device, math.ceil(size), "scope", mark, (), None, number))
        kept = teams.laid.layers_of(stage) / plan.chunks * one
        for device, ((at, _, _), ops) in product(devices, lives.items()):
            if at != stage:
                continue
            users = tuple(Mark(number, op) for op in (ops[0], ops[-1]))
            builder.buffer(
                Buffer("activations", "forward", device, math.ceil(kept), "last-use", users[0], users, None, number, 0, steps)
            )
        if plan.recompute == "full":  # the layer that is computed again
            again = Mark(number, first)
            for device in devices:
                builder.buffer(Buffer("recomputed layer", "backward", device, math.ceil(whole), "scope", again, (), None, number))
