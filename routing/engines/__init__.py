"""The engines: what is asked of tables that grow with the traffic, by Spark, and by Arrow without Java."""
