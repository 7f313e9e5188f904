"""Families of workloads, each behind a door (`hwsim.doors`): served models, services, trainings, pipelines, single requests."""
