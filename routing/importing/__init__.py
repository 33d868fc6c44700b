"""What a database administrator really has, read into the input tables."""
