"""Services: requests that come, wait, are put together into iterations and answered.

    services = [Service(plan, machine) for plan in plans]
    graph, actors = Serving(services).enter(graph, clocked=False)
    timeline = engine.simulate(graph, actors=actors)
    services[0].statistics()

A replica of a model is one state machine (`copy`), which decides as its server does. Where a service has its devices and links to
itself, it is played without a clock, and its ops are a graph (`alone`); where it shares them, its copies are SimPy processes
that run with the engine (`clocked`). Both come to the same, to the femtosecond.
"""
