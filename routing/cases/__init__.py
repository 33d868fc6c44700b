"""Find the outcome of a message on both directions: verdicts, judged path, gaps and near misses."""
