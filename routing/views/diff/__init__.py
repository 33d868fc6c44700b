"""Compare two configurations, times or versions: which messages' ways change, which routes, which findings."""
