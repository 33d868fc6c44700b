"""State the rule book in plain Python, one file a section. No Spark, Arrow, storage or clock is used here.

Times are integers: microseconds since 1970 in UTC. An open bound is None. Names are compared exactly.
"""
