"""The algorithms, one a file, in families."""
