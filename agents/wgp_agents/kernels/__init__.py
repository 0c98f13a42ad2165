"""The compiler of all compiled loops."""
