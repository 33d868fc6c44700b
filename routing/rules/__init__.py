"""State the rule book in plain Python, in one file for each section, without Spark, Arrow, storage or clock.

Times are integers: microseconds since 1970 in UTC. An open bound is None. Names are compared exactly.
"""
