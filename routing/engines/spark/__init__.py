"""The operations on messages with Spark."""
