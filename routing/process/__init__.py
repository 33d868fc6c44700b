"""A command as a process of its own: signals that end it, and what it has started.

The standard library alone: it is loaded before anything else, for a signal may come at once.
"""
