"""What becomes of a message, there and back: its verdicts, its judged path, gaps and near misses."""
