"""Headlines that come, fade and go: which of them to show to the next reader.

References:
    [ACE09] Agarwal, Chen, Elango. Spatio-temporal models for estimating click-through rate.
        WWW 2009.
    [CKRU08] Chakrabarti, Kumar, Radlinski, Upfal. Mortal multi-armed bandits. NeurIPS 2008.
    [LCLS10] Li, Chu, Langford, Schapire. A contextual-bandit approach to personalized news
        article recommendation. WWW 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy

from wgp_gym.envs.episode import Episode, make_episode
from wgp_gym.envs.noise import BernoulliNoise
from wgp_gym.envs.rescaling import common_factor
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Empirical
from wgp_gym.rkhs import Functions, linear_functions
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Indices
from wgp_gym.validation import check_float, check_int, check_size, reject

__all__ = ["NewsTask"]

OWNER = "NewsTask"
MAX_ARMS = 1000
MOST_ARTICLES = 300_000  # of an episode, drawn one by one, and steps at which some arrive
USUAL = {"num_arms": 30, "horizon": 2000}
CONCENTRATION = 4.0  # of the beta law of click rates: of mean 1/4 it is Beta(1, 3)
ROUNDING = 1e-9


@dataclass(frozen=True)
class Article:
    """A headline: it is there from step `start` to before step `stop`, counted from 0."""

    slot: int
    start: int
    stop: int
    age: int = 0  # at its start; above 0 of those that an episode begins with


class NewsTask(Task):
    """A page with n slots for headlines, of which each step shows one and is clicked or not.

    Articles arrive as a Poisson process and take a free slot each, chosen uniformly; one that
    finds none is lost. Each stays for a geometric number of steps, as mortal arms do ([CKRU08]).
    A new one is clicked with a probability drawn from a beta law, which halves every `half_life`
    steps: pools that change all the time ([LCLS10]), short lives and click rates
    that move are what a front page has ([ACE09]). A slot without an article pays 0 for sure.
    `info["action_mask"]` and `available()` say which slots have one. What was learned of a slot
    says nothing of the article that takes it next.

    An episode is the arrivals, slots, lifetimes and first click rates of all its articles. It
    begins near the long run's state: as many articles as a Poisson law with mean
    arrival_rate x lifetime gives, cut off at 1 and n (Erlang's formula; few more where articles
    stay for only a few steps), with the ages and the times left of articles that have been there
    a while. At least one article is there at any step: the last one stays
    until the next arrives.

    Slots have nothing to do with each other: the kernel is the identity, the norm of f_t the
    Euclidean norm of the n click rates, 0 of an empty slot. Slot i stands at i / (n - 1).

    Deviation: real click rates move both ways, and depend on the reader; here they only fall.

    Args:
        num_arms: The number n of slots, in [2, 1000].
        arrival_rate: The mean number of articles that arrive at each step, in [1e-6, 1000].
        lifetime: The mean number of steps that an article stays, in [1, 1e6].
        click_rate: The mean m of the click rates of new articles, in [0.01, 0.99]; their law is
            Beta(4 m, 4 (1 - m)).
        half_life: The steps in which a click rate halves, in [1, 1e9].
        horizon: The number of steps T.
        norm_bound: The largest norm B of the click rates of each episode, 0 or at least 1e-100;
            None: as drawn.
        variation_budget: The variation B_T of each episode, likewise, but 0 only where click rates
            never change. Both rescale all click rates alike, so that an empty slot still pays
            nothing: with both, the budget is met, and an error where it takes norms above the
            bound.

    Raises:
        ValueError: If a parameter is out of its range, or an episode is too large to hold or to
            draw in some seconds; when an episode is drawn, if a budget cannot be met, or carries a
            click rate above 1.
    """

    def __init__(
        self,
        *,
        num_arms: int = 30,
        arrival_rate: float = 0.1,
        lifetime: float = 200.0,
        click_rate: float = 0.25,
        half_life: float = 100.0,
        horizon: int = 2000,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
    ) -> None:
        count = check_int("num_arms", num_arms, OWNER, 2, MAX_ARMS)
        horizon = check_int("horizon", horizon, OWNER, 1)
        check_size(OWNER, {"num_arms": count, "horizon": horizon}, USUAL)
        self._arrival_rate = check_float("arrival_rate", arrival_rate, OWNER, 1e-6, 1000)
        self._lifetime = check_float("lifetime", lifetime, OWNER, 1, 1e6)
        self._click_rate = check_float("click_rate", click_rate, OWNER, 0.01, 0.99)
        self._half_life = check_float("half_life", half_life, OWNER, 1, 1e9)
        self._check_work(count, horizon)
        super().__init__(
            kernel=Empirical(np.eye(count)),
            domain=np.linspace(0.0, 1.0, count)[:, None],
            schedule=knot_per_step(horizon),
            noise=BernoulliNoise(),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            arm_names=[f"slot {i}" for i in range(count)],
            reward_range=(0.0, 1.0),
            masked=True,
        )

    def _check_work(self, slots: int, horizon: int) -> None:
        """Raise ValueError if an episode has more articles than are drawn in some seconds."""
        arrivals = self._arrival_rate * horizon
        articles = min(arrivals, slots * (1 + horizon / self._lifetime))  # no more find a slot
        if articles + min(arrivals, horizon) > MOST_ARTICLES:  # and steps at which some arrive
            rule = f"such that articles and the steps they arrive at are {MOST_ARTICLES:,} at most"
            reject("arrival_rate", OWNER, rule, self._arrival_rate)

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the articles of one episode.

        Raises:
            ValueError: If a budget cannot be met, or carries a click rate above 1.
        """
        rates = np.zeros((self.horizon, len(self.domain)))
        there = np.zeros(rates.shape, bool)
        mean = CONCENTRATION * self._click_rate
        articles = self._articles(rng)
        first = rng.beta(mean, CONCENTRATION - mean, len(articles))
        for article, rate in zip(articles, first, strict=True):
            steps = slice(article.start, article.stop)
            age = article.age + np.arange(article.stop - article.start)
            rates[steps, article.slot] = rate * 2.0 ** (-age / self._half_life)
            there[steps, article.slot] = True
        functions = self._met(linear_functions(rates))
        return make_episode(self.schedule, functions, self._search, self.norm_bound, there)

    def _articles(self, rng: np.random.Generator) -> list[Article]:
        """Draw where and when articles are there."""
        page, leaving = Page(len(self.domain)), 1 / self._lifetime
        slots = rng.permutation(len(self.domain))[: self._number_at_first(rng)]
        # A geometric lifetime has no memory: what is left of it is as long as a new one.
        left, ages = rng.geometric(leaving, len(slots)), rng.geometric(leaving, len(slots)) - 1
        for slot, stop, age in zip(slots, left, ages, strict=True):
            page.add(Article(int(slot), 0, int(stop), int(age)))
        arrivals = rng.poisson(self._arrival_rate, self.horizon)
        arrivals[0] = 0  # those of the first step are among the first ones
        for t in np.flatnonzero(arrivals).tolist():
            page.keep_one_until(t)
            for slot in rng.permutation(page.free(t))[: arrivals[t]]:
                page.add(Article(int(slot), t, t + int(rng.geometric(leaving))))
        page.keep_one_until(self.horizon)
        T = self.horizon
        return [one if one.stop <= T else replace(one, stop=T) for one in page.articles]

    def _number_at_first(self, rng: np.random.Generator) -> int:
        """Draw how many articles an episode begins with: a Poisson number, given 1 .. n."""
        numbers = np.arange(1, len(self.domain) + 1)
        load = self._arrival_rate * self._lifetime
        weights = numbers * np.log(load) - scipy.special.gammaln(numbers + 1)
        chances = np.exp(weights - weights.max())
        return int(rng.choice(numbers, p=chances / chances.sum()))

    def _met(self, drawn: Functions) -> Functions:
        """Return click rates with the norm and the variation that were asked for."""
        spent = float(self.schedule.increments(drawn.differences()).sum())
        largest = float(self.schedule.largest_norm(drawn))
        factor = common_factor(largest, spent, self.norm_bound, self.variation_budget)
        if factor * drawn.values.max() > 1 + ROUNDING:
            name = "norm_bound" if self.variation_budget is None else "variation_budget"
            reject(name, OWNER, "such that every click rate is in [0, 1]", getattr(self, name))
        return drawn.scaled(factor)


class Page:
    """Slots, and the articles that have been there.

    Args:
        slots: The number n of slots.

    Attributes:
        articles: All articles so far.
    """

    def __init__(self, slots: int) -> None:
        self.articles: list[Article] = []
        self._latest = np.full(slots, -1)  # the index of each slot's latest article
        self._stops = np.zeros(slots, np.int64)

    def add(self, article: Article) -> None:
        """Put an article in its slot."""
        self._latest[article.slot] = len(self.articles)
        self._stops[article.slot] = article.stop
        self.articles.append(article)

    def free(self, t: int) -> Indices:
        """Return the slots that are empty at step t, unless somebody takes them."""
        return np.flatnonzero(self._stops <= t)

    def keep_one_until(self, t: int) -> None:
        """Let the article that would be the last to leave stay until step t."""
        slot = int(self._stops.argmax())
        if self._stops[slot] < t:
            self._stops[slot] = t
            index = int(self._latest[slot])
            self.articles[index] = replace(self.articles[index], stop=t)
