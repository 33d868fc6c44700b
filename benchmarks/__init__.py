"""Measure commands side by side. This is not part of the package."""
