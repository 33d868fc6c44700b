"""All messages of Arrow's tables, judged by the rules in plain Python as `resolve` judges them on Spark."""
