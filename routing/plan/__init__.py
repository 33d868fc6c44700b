"""Decide: the estate from columns, and what the rules decide for keys, messages and paths in it."""
