"""A simulated day of SQL Server: its actions by the true routes, and its events.

The decisions are those of the tests' own resolver, but balancing uses another hash, because SQL Server's is
unknown.
"""
