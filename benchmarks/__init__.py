"""Side-by-side measurements; not part of the package."""
