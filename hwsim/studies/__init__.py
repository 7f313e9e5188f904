"""Studies: tables of runs over ranges of values. Each point is one call of `hwsim.api.simulate`."""
