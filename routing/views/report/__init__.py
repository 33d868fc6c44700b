"""Show on one page how messages are routed: the facts, the pictures, the page itself."""
