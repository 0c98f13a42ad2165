"""Pictures of an experiment's results, for papers: each function draws one and returns its axes.

All take `agents`, the labels of those to draw (all by default), and `ax`, where to draw (a new
figure by default). An agent looks the same in every picture: see `styles`.
"""

from wgp_agents.benchmark.figures.curves import plays, regret_around_changes, regret_curves
from wgp_agents.benchmark.figures.files import write_figures
from wgp_agents.benchmark.figures.scaling import growth
from wgp_agents.benchmark.figures.spread import final_regret, performance_profile
from wgp_agents.benchmark.figures.tuning import sensitivity

__all__ = [
    "final_regret",
    "growth",
    "performance_profile",
    "plays",
    "regret_around_changes",
    "regret_curves",
    "sensitivity",
    "write_figures",
]
