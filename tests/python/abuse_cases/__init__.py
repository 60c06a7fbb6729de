"""Hostile calls, by what they are about, and the bench that runs them."""
