"""Simulators of services, in Python and C++: requests in queues and at stations, with an event queue of their own."""
