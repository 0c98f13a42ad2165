"""The engine of kernelized and linear agents: action sets, surrogates, acquisitions, widths."""
