"""Random exports, and each figure of their evaluation computed by DuckDB."""
