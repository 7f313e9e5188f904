"""The training of a transformer, from its keys to the ops of its steps."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Final, Literal

from hwsim import ticks
from hwsim.collectives import CannotCollect
from hwsim.devices import CannotCompute
from hwsim.devices.roofline import peak_of
from hwsim.graph.builder import GraphBuilder
from hwsim.graph.opgraph import Trained
from hwsim.machine import Machine, NoRoute
from hwsim.models import KernelTimes, Transformer
from hwsim.spec import Mistakes, Tree
from hwsim.workload.training.alike import difference
from hwsim.workload.training.costs import Computing, Exchanges
from hwsim.workload.training.emit import Emission
from hwsim.workload.training.kinds import Kinds
from hwsim.workload.training.layout import Layout
from hwsim.workload.training.planning import Planned, planned, words
from hwsim.workload.training.schema import TrainKeys
from hwsim.workload.training.teams import Teams, between, stages
from hwsim.workload.training.wide import WideExchanges

TEAMS: Final = 32  # that are emitted one by one; of more, one copy stands for all
LAYERS: Final = 10_000  # ops of a step with an op for each stretch between collectives, up to which that is the default


def add_transformer(
    keys: TrainKeys,
    model: Transformer,
    tree: Tree,
    machine: Machine,
    builder: GraphBuilder,
    mistakes: Mistakes,
    *,
    name: str,
    start: float,
    fold: Literal["auto", "always", "never"],
    shared: bool = False,
) -> None:
    """Append the steps; arguments as of `add_training`."""
    plan = planned(keys, model, tree, machine, mistakes)
    if plan is None or len(mistakes):
        return
    laid = plan.laid
    node = machine.device(plan.devices[0]).node
    per_node = sum(1 for _ in takewhile(lambda each: machine.device(each).node == node, plan.devices))
    layout = Layout(laid, plan.devices, per_node)
    kinds = Kinds(
        [Computing(KernelTimes(gpu, plan.framework)) for gpu in plan.gpus],
        dict(zip(plan.devices, plan.kind, strict=True)) if plan.kind else {},
    )
    many = laid.dp * laid.plan.pp > TEAMS
    exchanges = Exchanges(machine, plan.framework, machine.rates(), WideExchanges(machine))
    unlike = ""
    try:
        if laid.dp > 1 and (many or fold == "always"):
            unlike = "" if kinds.alike(layout, laid.plan.pp, laid.dp) else "copies of the model have other kinds of GPUs"
            unlike = unlike or difference(machine, layout, between(layout, stages(plan), exchanges))
    except (CannotCollect, NoRoute) as error:
        mistakes.add(tree.place, str(error), getattr(error, "hint", None))
        return
    folded = fold != "never" and laid.dp > 1 and (fold == "always" or many) and not unlike
    copies = range(1) if folded else range(laid.dp)
    if unlike and fold != "never":
        builder.unfolded = unlike
    # a matter of the plan and the machine alone: what is asked of folding must not decide what the ops are
    told = 1 if many and not unlike else laid.dp
    layered = keys.detail == "layer" or (keys.detail == "auto" and _by_layers(plan, told) <= LAYERS)
    teams = Teams(
        plan,
        layout,
        builder,
        kinds,
        exchanges,
        copies=copies,
        layered=layered,
        buckets=keys.buckets,
    )
    try:
        Emission(teams, builder, name).emit(keys.steps, start, shared=shared)
    except (CannotCollect, CannotCompute, NoRoute) as error:
        mistakes.add(tree.place, str(error), getattr(error, "hint", None))
        return
    devices, speaks = kinds.told(layout, laid.plan.pp, copies)
    peaks = [peak_of(gpu.flop, laid.plan.dtype, "gpu")[1] for gpu in plan.gpus]
    whole = keys.tokens or (keys.epochs * keys.samples * laid.sequence if keys.epochs and keys.samples else 0.0)
    builder.training(
        Trained(
            program=name,
            plan=words(laid),
            steps=keys.steps,
            count=laid.tokens,
            unit="tokens",
            flop=laid.tokens * model.training_flop(laid.sequence),
            peak=math.fsum(peaks[kind] for kind in plan.kind) if plan.kind else peaks[0] * laid.gpus,
            gpus=laid.gpus,
            devices=devices,
            speaks=speaks,
            kinds=kinds.groups(plan.devices),
            inside=tuple(sorted(teams.inside.items())),
            whole=whole,
            start=ticks.femtoseconds(start),
            replicas=laid.dp if folded else 1,
        )
    )


def _by_layers(plan: Planned, copies: int) -> int:
    """Ops of a step, about, where every stretch between two collectives is one."""
    laid = plan.laid
    each = 9 if laid.plan.tp > 1 else 1
    return copies * laid.plan.pp * laid.microbatches * 2 * laid.layers * each
