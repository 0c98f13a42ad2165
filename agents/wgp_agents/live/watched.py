"""What can be seen of a live bandit: what it expects, its report, its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from wgp_agents.gp.model import Posterior
from wgp_agents.live.evaluation import Method, Replay
from wgp_agents.live.events import Event
from wgp_agents.live.follower import Follower
from wgp_agents.live.insight import insight_of, posterior_of
from wgp_agents.live.occasion import check_context, time_of
from wgp_agents.live.past import replay_of
from wgp_agents.live.report import Report
from wgp_agents.live.reporting import Known, report_of
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
            found = self._known(moment, context).expects
            unit = self._follower.learner.unit
        if found is None:
            reject("agent", "expects", "one with a posterior", self._settings.agent)
        rewards = self._settings.rewards
        return Posterior(rewards.written(found.mean, unit), rewards.spread(*found, unit))

    def _known(self, time: float | None, context: Mapping[str, object] | None) -> Known:
        """Return what is known of some time, or of the last decision."""
        follower, settings = self._follower, self._settings
        shown = None
        if context is not None and settings.knobs is not None:
            shown = settings.shown(follower.choices, settings.knobs.place(context), None)
        learner = follower.learner
        with learner.known(time, shown) as agent:
            found, insight, when = posterior_of(agent), insight_of(agent), learner.clock
        if settings.is_contextual(follower.choices) and shown is None:
            found = None
        return Known(found, insight, learner.unit, when, learner.has_rewards, learner.waits_for())

    def report(self, *, time: Time | None = None) -> Report:
        """Return what there is to say of it: arms, bands, memory, changes, the last decision.

        Where it has contexts, what is expected of the arms is for that of the last decision.

        Args:
            time: Of when, if that is later than the last decision: what is known has faded by then.
                Default: of the last decision, whatever the clock says, so that a log of the past
                has the same report at any day. Without a timescale it does nothing.
        """
        moment = None if time is None else time_of(self._settings, time, "report")
        with self._follower.session() as session:
            events = session.events()
            asked = [event for event in events if event.kind == "asked"]
            context = asked[-1].data.get("context") if asked else None
            known = self._known(moment, cast("Mapping[str, object] | None", context))
            return report_of(self.name, self._settings, self._follower.choices, known, events)

    def plot(self, *, time: Time | None = None) -> Figure:
        """Return the report's picture, of matplotlib; `time` is that of `report`."""
        return self.report(time=time).plot()

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
