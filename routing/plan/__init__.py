"""Decide: build the estate from columns, and decide keys, messages and paths in it by the rules."""
