"""Families of workloads: served models, services, training, pipelines and single requests (`hwsim.families_interface`)."""
