"""A part of every kind for bestarm, from a package of its own."""
