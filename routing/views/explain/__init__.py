"""Explain one message: its question, the judgement by the rules, and the path as lines and sentences."""
