"""Questions asked of a configuration and its messages; each room answers one with rows."""
