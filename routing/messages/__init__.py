"""Messages by the million on Spark: conform, key, look up, resolve; it collects no more than keys."""
