"""Results of a run, as data: timeline, usage of capacities, memory, requests, trainings, verdicts and warnings."""
