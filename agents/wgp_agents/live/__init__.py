"""Ask and tell on a running system, in the user's own units."""
