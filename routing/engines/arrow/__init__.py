"""The operations on messages with Arrow, batch by batch and without pyspark."""
