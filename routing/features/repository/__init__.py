"""Exports and scripts as they lie in a repository, linted without tables.

What was read is evidence as `check` has it; `linting.lint_files` is where it begins.
"""
