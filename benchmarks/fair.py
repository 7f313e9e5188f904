"""Cost of one fair-sharing event with few classes and many flows.

24 routes between 32 hosts of a leaf-spine network; a flow that ends is replaced by another of
random size on a random route.  An end and an arrival are two events, as in the literature.
"""

from __future__ import annotations

import random
import time

from hwsim.demand import Demand
from hwsim.engine.compile import flow_class
from hwsim.engine.fluid import Fluid

HOSTS, PER_LEAF, SPINES, ROUTES = 32, 16, 8, 24


def route(source: int, target: int, spine: int) -> list[str]:
    """Link names from host to host."""
    leaf, other = source // PER_LEAF, target // PER_LEAF
    if leaf == other:
        return [f"h{source}.up", f"h{target}.down"]
    return [f"h{source}.up", f"l{leaf}-s{spine}.up", f"l{other}-s{spine}.down", f"h{target}.down"]


def event_cost(flows: int, replaced: int = 2000, seed: int = 3) -> float:
    """CPU seconds per event with so many flows in flight."""
    rng = random.Random(seed)
    routes = [route(*rng.sample(range(HOSTS), 2), rng.randrange(SPINES)) for _ in range(ROUTES)]
    names = sorted({link for links in routes for link in links})
    rates = {name: 50e9 if name.startswith("h") else 100e9 for name in names}
    numbers = {name: number for number, name in enumerate(names)}
    fluid = Fluid((), len(names))
    classes = [
        fluid.extend(flow_class(Demand(amounts=tuple(sorted((link, 1e6) for link in links)), share=1e6), rates, numbers))
        for links in routes
    ]
    for op in range(flows):
        fluid.join(rng.choice(classes), op, int(rng.expovariate(1e-10)) + 1, 0)
    due = {number: end for end, number in fluid.settle(0)}
    drawn = [(rng.choice(classes), int(rng.expovariate(1e-10)) + 1) for _ in range(replaced)]
    begin = time.process_time()
    for op, (number, work) in enumerate(drawn, flows):
        ending = min(due, key=due.__getitem__)
        now = due.pop(ending)
        fluid.leave(ending, now)
        due.update((moved, end) for end, moved in fluid.settle(now))
        fluid.join(number, op, work, now)
        due.update((moved, end) for end, moved in fluid.settle(now))
    return (time.process_time() - begin) / (2 * replaced)
