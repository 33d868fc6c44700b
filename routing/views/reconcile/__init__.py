"""Compare the routes with SQL Server's actions: episodes of observations, each judged at its start."""
