"""Advise on messages: remedies with their statements, by reason and by SQL Server's status."""
