"""The operations over messages by Arrow, batch by batch; nothing here imports pyspark."""
