"""Services: requests that come, wait, are put together into iterations and answered, as SimPy processes that run with the engine.

    services = [Service(plan, machine) for plan in plans]
    timeline = engine.simulate(graph, actors=[service.actor for service in services])
    services[0].statistics()

Every iteration is a short chain of ops: its kernels on the GPUs of a replica of the model, then its all-reduces on the links
between them, shared with everything else that runs there.
"""

from __future__ import annotations

from hwsim.actors.serving.service import Service

__all__ = ["Service"]
