"""The order of a run: full, incremental, and its stages."""
