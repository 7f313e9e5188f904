"""The simulation of services: requests arrive, queue, run in batches iteration by iteration, and complete.

    services = [Service(plan, machine) for plan in plans]
    graph, actors = Serving(services).enter(graph, clocked=False)
    timeline = engine.simulate(graph, actors=actors)
    services[0].statistics()

Each replica of a model is one state machine (`copy`), which schedules requests like the real server. If a service has its devices
and links to itself, it is simulated without a clock, and its ops become a graph (`alone`). If it shares them with other jobs, its
replicas are SimPy processes on the engine's clock (`clocked`). Both give the same times, to the femtosecond.
"""
