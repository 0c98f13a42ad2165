"""The engine: memories and their posteriors, confidence widths, theory-tuned parameters."""
