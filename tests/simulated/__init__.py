"""A day of SQL Server, played: what it does by the true routes, and says in its events.

The decisions are those of the tests' own resolver, but balanced by another hash, since that of SQL Server is not
known.
"""
