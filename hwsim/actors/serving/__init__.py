"""Services: requests that come, wait, are put together into iterations and answered, as SimPy processes beside the engine.

    services = [Service(plan, machine) for plan in plans]
    timeline = engine.simulate(graph, actors=[service.actor for service in services])
    services[0].statistics()

Every iteration is a short chain of ops that the driver plays: its kernels on the GPUs of a copy of the model, then its
all-reduces on the links between them, shared with whatever else runs there.
"""

from __future__ import annotations

from hwsim.actors.serving.service import Service

__all__ = ["Service"]
