"""A module for each command: ``add`` declares its arguments, ``run`` calls one function and prints the result.

Spark is imported only inside ``run``, so that ``--help`` and a wrong option answer at once.
"""
