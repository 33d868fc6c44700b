"""One room a command: ``add`` declares its arguments, ``run`` calls one function and prints what it returns.

Spark is imported only inside ``run``, so that ``--help`` and a wrong option answer at once.
"""
