"""Follow messages hop by hop to where they end, and the replies back."""
