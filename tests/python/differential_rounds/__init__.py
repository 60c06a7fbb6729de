"""Random tables and statements, and the comparison of two answers."""
