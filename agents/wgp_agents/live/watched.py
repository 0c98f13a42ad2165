"""What can be seen of a live bandit: what it expects, its report, its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from wgp_agents.gp.model import Posterior
from wgp_agents.live.evaluation import Method, Replay
from wgp_agents.live.events import Event
from wgp_agents.live.follower import Follower
from wgp_agents.live.insight import Insight, insight_of, posterior_of
from wgp_agents.live.occasion import check_context, time_of
from wgp_agents.live.past import replay_of
from wgp_agents.live.report import Report
from wgp_agents.live.reporting import report_of
from wgp_agents.live.settings import Settings
from wgp_agents.live.times import Time
from wgp_gym.validation import reject

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wgp_agents.live.decisions import LogLike

__all__ = ["Watched"]


class Watched:
    """A bandit that can be looked at. Looking changes nothing.

    Attributes:
        name: Its name in its storage.
    """

    name: str
    _settings: Settings
    _follower: Follower

    def expects(
        self, *, context: Mapping[str, object] | None = None, time: Time | None = None
    ) -> Posterior:
        """Return the expected reward of all arms, and its standard deviation, `(n,)` each.

        They are in the user's unit, and of what is known: open decisions have told nothing.

        Args:
            context: The occasion that is meant, where the bandit has contexts.
            time: Of when; default: of the last decision. Without a timescale it does nothing.

        Raises:
            ValueError: If the agent has no posterior, or the arms are offers.
        """
        moment = None if time is None else time_of(self._settings, time, "expects")
        with self._follower.session():
            if self._follower.choices.changing:
                reject("arms", "expects", "arms that stay: of offers, see `ask`", "Offers")
            check_context(self._settings, context, "expects")
            found, _ = self._known(moment, context)
        if found is None:
            reject("agent", "expects", "one with a posterior", self._settings.agent)
        return found

    def _known(
        self, time: float | None, context: Mapping[str, object] | None
    ) -> tuple[Posterior | None, Insight]:
        """Return what is expected of the arms in the user's unit, and what the agent says."""
        follower, settings = self._follower, self._settings
        shown = None
        if context is not None and settings.knobs is not None:
            shown = settings.shown(follower.choices, settings.knobs.place(context), None)
        learner, rewards = follower.learner, settings.rewards
        with learner.known(time, shown) as agent:
            found, insight = posterior_of(agent), insight_of(agent)
        if found is None or (settings.is_contextual(follower.choices) and shown is None):
            return None, insight
        mean = rewards.written(found.mean, learner.unit)
        return Posterior(mean, rewards.spread(*found, learner.unit)), insight

    def report(self) -> Report:
        """Return what there is to say of it: arms, bands, memory, changes, the last decision.

        Where it has contexts, what is expected of the arms is for that of the last decision.
        """
        with self._follower.session() as session:
            events = session.events()
            asked = [event for event in events if event.kind == "asked"]
            context = asked[-1].data.get("context") if asked else None
            expects, insight = self._known(None, cast("Mapping[str, object] | None", context))
            choices, learner = self._follower.choices, self._follower.learner
            return report_of(
                self.name,
                self._settings,
                choices,
                learner.unit,
                expects,
                insight,
                events,
                learner.waits_for(),
            )

    def plot(self) -> Figure:
        """Return the report's picture, of matplotlib."""
        return self.report().plot()

    def log(self) -> list[Event]:
        """Return all that was asked, told and changed, in order."""
        with self._follower.session() as session:
            return session.events()

    def replay(
        self,
        log: LogLike,
        *,
        method: Method = "rejection",
        max_weight: float | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> Replay:
        """Return what such a bandit, made anew, would have earned on a log of decisions.

        What that means, by each method, stands in `wgp_agents.live.evaluation`. The agent chooses
        among the arms that are there now; rows of arms that were removed stay, as ones on which
        its choice is never the log's.

        Args:
            log: As in `fit`, with `propensity` where choices were not equally likely.
            method: "rejection", "ips", "snips" or "doubly-robust".
            max_weight: The largest weight of a row.
            level: The probability with which the interval holds.
            seed: Of the agent.

        Raises:
            ValueError: If a row does not fit, or none can be used.
            ModuleNotFoundError: If pandas is not installed: the extra "live" brings it.
        """
        with self._follower.session():
            choices = self._follower.choices
        return replay_of(
            log,
            self._settings,
            choices,
            method=method,
            max_weight=max_weight,
            level=level,
            seed=seed,
        )
