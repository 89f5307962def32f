"""Simulation, what benchmarks, plans and tuning share: chunks of replications, where they are computed, intervals."""
