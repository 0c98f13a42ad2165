"""Change detectors: each watches many independent streams of numbers at once."""

from wgp_agents.detectors.cusum import CUSUM
from wgp_agents.detectors.glr import GLR
from wgp_agents.detectors.page_hinkley import PageHinkley
from wgp_agents.detectors.two_window import TwoWindowMean

__all__ = ["CUSUM", "GLR", "PageHinkley", "TwoWindowMean"]
