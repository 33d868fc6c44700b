"""The tests' own resolver: the rule book read once more, in plain Python.

It is an oracle: one message at a time, no Spark, nothing imported from the package under test.
"""
