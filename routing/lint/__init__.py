"""Find faults and hazards of a configuration. Each finding has a stable code.

`linting.lint` takes tables and returns rows. `catalogue` lists the codes, and a page in `pages/` explains each.
"""
