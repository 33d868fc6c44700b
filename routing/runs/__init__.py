"""Run jobs by either engine: in full, incrementally or over a time window."""
