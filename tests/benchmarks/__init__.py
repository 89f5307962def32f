"""The programs of benchmarks/."""
