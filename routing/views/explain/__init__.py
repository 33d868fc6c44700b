"""Explain one message: its question, the judgement by the rules, the path as lines, and the lines as sentences."""
