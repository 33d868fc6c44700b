"""Start Spark sessions, and use existing ones."""
