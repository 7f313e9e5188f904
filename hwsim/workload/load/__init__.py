"""Load of services: arrival times and sizes of requests, as streams of counter-based random numbers."""
