"""What clients of PostgreSQL check of `evenkeel serve`, by subject."""
