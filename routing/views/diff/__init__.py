"""Compare two configurations, times or versions: the changes for messages, routes and findings."""
