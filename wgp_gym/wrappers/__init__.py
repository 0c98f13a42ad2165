"""Wrappers for RL: what a policy is shown, what it is paid, and which episodes it plays.

| wrapper | what it does |
|---|---|
| `HistoryObservation` | shows the last k plays: a policy without memory can explore |
| `OneHotHistory` | the same, with the arm as a one-hot row: for arms without order |
| `ChangeNotification` | tells whether f has changed, and how much |
| `DelayedRewards` | pays rewards late, and some never |
| `RegretReward` | hands on minus the regret of a step in the place of its reward |
| `SeededEpisodes` | plays the episodes of given seeds, one after the other |

All but the last have a `Vector...` form for the native vector environment. A notification goes
around a history, not into it: `ChangeNotification(HistoryObservation(env, 20), "whether")`; a
history goes around late rewards: `HistoryObservation(DelayedRewards(env, missing=0.3), 20)`.
"""

from wgp_gym.wrappers.changes import ChangeNotification, VectorChangeNotification
from wgp_gym.wrappers.episodes import SeededEpisodes
from wgp_gym.wrappers.frame import Frame
from wgp_gym.wrappers.history import History, HistoryObservation, VectorHistoryObservation
from wgp_gym.wrappers.late import DelayedRewards, VectorDelayedRewards
from wgp_gym.wrappers.one_hot import OneHotHistory, VectorOneHotHistory
from wgp_gym.wrappers.regret import RegretReward, VectorRegretReward

__all__ = [
    "ChangeNotification",
    "DelayedRewards",
    "Frame",
    "History",
    "HistoryObservation",
    "OneHotHistory",
    "RegretReward",
    "SeededEpisodes",
    "VectorChangeNotification",
    "VectorDelayedRewards",
    "VectorHistoryObservation",
    "VectorOneHotHistory",
    "VectorRegretReward",
]
