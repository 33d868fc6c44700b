"""Read T-SQL scripts into statements and problems, and apply them to the state of one instance."""
