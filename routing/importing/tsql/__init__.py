"""Read T-SQL scripts into statements and problems, and apply them to what one instance holds."""
