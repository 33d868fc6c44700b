"""Runs that are killed, raced, or meet a broken storage: `make test-crash`."""
