"""Compare what the routes say with what SQL Server did: episodes of observations, each judged as of its start."""
