"""Implement the rule book a second time in plain Python, as an oracle for tests.

The oracle resolves one message at a time, without Spark and without imports from the package under test.
"""
