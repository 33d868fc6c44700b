"""Delta tables and what stands in them: where they are, their commits, small ones as plain Python."""
