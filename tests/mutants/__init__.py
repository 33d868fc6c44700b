"""The rules, each broken once on purpose: every break must turn a test red (``make mutants``)."""
