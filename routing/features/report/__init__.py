"""One page that shows how messages are routed: what it tells, the pictures, the page itself."""
