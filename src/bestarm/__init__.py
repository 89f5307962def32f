"""Find the best of K candidates within a fixed budget of noisy observations."""
