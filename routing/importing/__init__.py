"""Import catalog exports, T-SQL scripts and Extended Events of SQL Server into the input tables."""
