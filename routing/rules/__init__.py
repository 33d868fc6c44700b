"""The rule book, one file a section, in plain Python: no Spark, no Arrow, no storage, no clock.

Times are integers, microseconds since 1970 in UTC; an open bound is None. Names are compared exactly.
"""
