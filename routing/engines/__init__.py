"""The engines: operations over tables that grow with the traffic, by Spark, and by Arrow without Java."""
