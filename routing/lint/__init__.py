"""Faults and hazards of a configuration, each a finding with a stable code.

`linting.lint` takes tables and returns rows; `catalogue` lists the codes, and a page of `pages/` explains each.
"""
