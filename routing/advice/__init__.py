"""What to do about a message: remedies with their statements, by reason and by SQL Server's status."""
