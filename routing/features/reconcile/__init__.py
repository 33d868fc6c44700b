"""What the routes say beside what SQL Server did: episodes of observations, each judged as of its start."""
