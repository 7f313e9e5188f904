"""A real computer becomes a machine file: measure it, fit the parameters, say how far predictions are off.

    suites        what is timed: kernels of numpy, memory, threads, storage, network, hand-offs, a GPU
    harness       how it is timed: shuffled rounds, the time of the CPU, what disturbed it
    environment   what machine it was, and what of it changes a measurement
    store         the file of measurements
    fit, validate the parameters, and their error on what they never saw

The simulator knows nothing of it: this imports `hwsim`, and nothing but the command line imports this.
"""

from __future__ import annotations
