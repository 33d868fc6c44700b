"""Spark sessions: the only builder, and the JARs that it takes."""
