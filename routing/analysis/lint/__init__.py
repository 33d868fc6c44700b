"""Faults and hazards of a configuration, each a finding with a stable code.

`linting.lint` takes and returns DataFrames; `catalogue` lists the codes, and a page of `pages/` explains each.
"""
