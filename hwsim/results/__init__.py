"""Results of a run as data: timeline, use of capacities, memory, requests, trainings, verdicts and warnings."""
