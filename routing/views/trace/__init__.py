"""Follow messages hop by hop to their end, and the replies back."""
