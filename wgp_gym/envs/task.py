"""A task: a family of episodes, and all that an environment must know to play them."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from wgp_gym.arrays import ReadOnlyArrays, blocks, frozen
from wgp_gym.envs.batch import join, stack
from wgp_gym.envs.drawn_functions import check_arms, check_functions, check_kernel, check_range
from wgp_gym.envs.episode import Episode, changing_episode, make_episode
from wgp_gym.envs.laws import Drawable
from wgp_gym.envs.noise import LARGEST, SMALLEST, BernoulliNoise, GaussianNoise, Noise
from wgp_gym.envs.optimum import BoxSearch, PointSearch, Search
from wgp_gym.envs.rescaling import rescale
from wgp_gym.kernels import Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.rkhs import Functions
from wgp_gym.schedules import Schedule, position_per_step
from wgp_gym.streams import FUNCTIONS, Stream
from wgp_gym.threads import over_parts
from wgp_gym.types import Array, Floats32, Mask
from wgp_gym.validation import check_bool, check_float, reject

__all__ = ["Task", "load_task"]

BLOCK_NUMBERS = 400_000  # of the episodes that are drawn at a time
WORK = 100  # multiplications that take as long as one of these numbers, about


class Task(ReadOnlyArrays, ABC):
    """A family of episodes; an environment plays one after the other.

    A task of one's own is a subclass whose `draw` draws the functions at the schedule's knots
    and returns `self.episode(functions)`.

    Args:
        kernel: The kernel k.
        domain: The decision set's points, `(n, d)`; with `continuous` a grid as `optimum.grid`
            returns it.
        schedule: How f_t moves with t.
        noise: How a reward is made of its expectation; default: Gaussian, R = 0.1.
        norm_bound: B as asked for, or None.
        variation_budget: B_T as asked for, or None.
        continuous: Whether any point of the box may be played.
        arm_names: A name for each point of the domain, for pictures; None where they have none.
        reward_range: Bounds of every expected reward that a learner may know, or None.
        contextual: Whether the arms are drawn anew at each step. The domain then only gives
            their shape, and the kernel has features.
        link: What the expected reward is of the function in the RKHS. See `BanditProblem`.
        masked: Whether arms come and go: an episode then says which are there at each step, and
            so does the environment, for the next action.

    Attributes:
        drawable: Of the class: which keywords may be laws in an environment's arguments, and set
            by the options of a reset, and how. See `RandomTask`.

    Raises:
        ValueError: If a number or a point is out of its range, the domain of a box is no grid, or
            the kernel of contextual arms has no features.
    """

    drawable: ClassVar[Mapping[str, Drawable]] = MappingProxyType({})

    def __init__(
        self,
        *,
        kernel: Kernel,
        domain: Array,
        schedule: Schedule,
        noise: Noise | None = None,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        continuous: bool = False,
        arm_names: Sequence[str] | None = None,
        reward_range: tuple[float, float] | None = None,
        contextual: bool = False,
        link: Literal["identity", "logistic"] = "identity",
        masked: bool = False,
    ) -> None:
        owner = type(self).__name__
        self.kernel = kernel
        self.domain = frozen(domain)  # learners are handed this very array
        self.schedule = position_per_step(schedule) if contextual or masked else schedule
        self.noise = GaussianNoise(0.1) if noise is None else noise
        self.norm_bound = optional_bound("norm_bound", norm_bound, owner)
        self.variation_budget = optional_bound("variation_budget", variation_budget, owner)
        if self.variation_budget and len(schedule.left) == 1:
            rule = "None or 0 where random changes may be none, or for a task that never changes"
            reject("variation_budget", owner, rule, self.variation_budget)
        self.continuous = check_bool("continuous", continuous, owner)
        self.arm_names = None if arm_names is None else list(arm_names)
        self.reward_range = reward_range
        self.contextual = check_bool("contextual", contextual, owner)
        if self.contextual and kernel.feature_map() is None:
            rule = f"False for the kernel {type(kernel).__name__}, which has no finite features"
            reject("contextual", owner, rule, contextual)
        self.link = link
        self.masked = check_bool("masked", masked, owner)
        if self.masked and (continuous or contextual):
            reject("masked", owner, "False on a box, or where arms are drawn anew", masked)
        Task.problem(self)  # which refuses what no learner can be told
        if self.arm_names is not None and len(self.arm_names) != len(self.domain):
            reject("arm_names", owner, f"one for each of the {len(self.domain)} arms", arm_names)
        self._kernel_checked = False  # of the first episode
        self._search: Search = BoxSearch(kernel, self.domain) if continuous else PointSearch()

    @property
    def horizon(self) -> int:
        """The number of steps T."""
        return len(self.schedule.index)

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode, about."""
        n, d = self.domain.shape
        positions, steps = len(self.schedule.left), self.horizon
        drawn = steps * n * d if self.contextual else 0
        return int(steps + 4 * positions + 2 * self.schedule.num_knots * n + drawn)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw one episode from the generator of its functions."""

    def formula(self, parameters: Array, points: Array) -> Array:
        """Return an episode's functions anywhere on the box, where they are no expansions.

        A task whose episodes have `parameters` overrides it. Its arithmetic goes element by
        element, so that a number does not depend on what else is evaluated.

        Args:
            parameters: Those of B functions, `(B, P)`.
            points: Points for each, `(B, q, d)`.

        Returns:
            The expected rewards, `(B, q)`.
        """
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "draw" in vars(cls) and "draw_batch" not in vars(cls):
            cls.draw_batch = Task.draw_batch  # type: ignore[method-assign]  # not a parent's own

    def draw_batch(self, generators: Sequence[np.random.Generator]) -> Episode:
        """Draw an episode from each of B generators, the same as each alone.

        A task whose arithmetic takes many episodes at once overrides it beside `draw`: see
        `in_blocks`. A subclass that overrides `draw` alone has this one again.
        """
        drawn = [self.draw(rng) for rng in generators]
        for one in drawn:
            if not isinstance(one, Episode):  # a missing `return` is easily made
                owner = type(self).__name__
                reject("draw", owner, "a method that returns an Episode, as self.episode does", one)
        return join([stack(drawn)])

    def draw_episodes(self, stream: Stream) -> Episode:
        """Draw B episodes, all but their noise, from the streams that they take."""
        return self.draw_batch(stream(FUNCTIONS))

    def in_blocks(
        self,
        draw: Callable[[Sequence[np.random.Generator]], Episode],
        generators: Sequence[np.random.Generator],
    ) -> Episode:
        """Draw episodes with a function that draws several, one block after the other."""
        return join([draw(generators[block]) for block in self.blocks(0, len(generators))])

    def over_blocks(self, draw: Callable[[slice], Episode], count: int) -> Episode:
        """Draw `count` episodes with a function of the indices of a block, over several threads.

        The function must not change what others read. It pays where an episode is many numbers,
        drawn and multiplied many at a time: a thread in Python itself holds the others up.
        """

        def _part(part: slice[int, int, None]) -> list[Episode]:
            return [draw(block) for block in self.blocks(part.start, part.stop)]

        parts = over_parts(_part, count, WORK * self.kept_numbers)
        return join([block for part in parts for block in part])

    def blocks(self, start: int, stop: int) -> list[slice]:
        """Cut these episodes in blocks of as many as stay in cache."""
        return blocks(start, stop, self.kept_numbers, BLOCK_NUMBERS)

    def rescaled(self, functions: Functions) -> Functions:
        """Return the functions with the norm bound and the variation that were asked for."""
        if self.norm_bound is None and self.variation_budget is None:
            return functions
        if functions.values.ndim == 3:
            count = len(functions.values)
            return Functions.stack([self.rescaled(functions.of_episode(i)) for i in range(count)])
        return rescale(self.schedule, functions, self.norm_bound, self.variation_budget)

    def episode(
        self,
        functions: Functions,
        arms: Floats32 | None = None,
        available: Mask | None = None,
    ) -> Episode:
        """Return the episode with these functions at the knots, rescaled as was asked for.

        Args:
            functions: The K knots, on the domain; where arms are drawn anew `linear_functions`
                of their vectors. Those of a batch make a batch.
            arms: Where arms are drawn anew, those of every step, `(T, n, d)`, in [0, 1].
            available: Of a `masked` task, which arms are there at each step, `(T, n)`, at least
                one. What the others pay, the functions say: no more than the best that is there.

        Raises:
            ValueError: If there is not one function for each knot, one is not finite, is none of
                the task's kernel (the first episode is looked at) or leaves the range of rewards,
                a budget cannot be met, arms are not given as the task has them, or those that are
                not there pay too much.
        """
        owner = f"{type(self).__name__}.episode"
        phi = self.kernel.feature_map() if self.contextual else None
        count = None if phi is None else phi(self.domain[:1]).shape[-1]
        check_functions(functions, self.schedule.num_knots, len(self.domain), count, owner)
        shape = *functions.values.shape[:-2], self.horizon, *self.domain.shape
        check_arms(arms, shape if self.contextual else None, owner)
        self._check_available(available)
        if not (self._kernel_checked or self.contextual):
            check_kernel(functions, self.kernel, self.domain, owner)
            self._kernel_checked = True
        functions = self.rescaled(functions)
        ends = self.reward_range
        if ends is None and isinstance(self.noise, BernoulliNoise):
            ends = 0.0, 1.0
        if ends is not None and self.link == "identity" and not self.contextual:
            check_range(functions.values, ends, owner)  # between knots it is between theirs
        if arms is None or phi is None:
            return make_episode(self.schedule, functions, self._search, self.norm_bound, available)
        bound, link = self.norm_bound, self.link
        return changing_episode(self.schedule, functions, phi, arms, bound, link)

    def _check_available(self, available: Mask | None) -> None:
        """Raise ValueError unless a masked task says which arms are there, and no other does."""
        shape = self.horizon, len(self.domain)
        rule = f"an array {shape} of bools" if self.masked else "None where all arms stay"
        fits = available is None
        if self.masked and available is not None:
            fits = available.shape[-2:] == shape and available.dtype == bool
        elif self.masked:
            fits = False
        if not fits:
            reject("available", f"{type(self).__name__}.episode", rule, available)

    def problem(self) -> BanditProblem:
        """Return what a learner may know before an episode is drawn."""
        return BanditProblem(
            kernel=self.kernel,
            domain=self.domain,
            horizon=self.horizon,
            noise_scale=self.noise.scale,
            norm_bound=self.norm_bound,
            variation_budget=self.variation_budget,
            continuous=self.continuous,
            reward_range=self.reward_range,
            contextual=self.contextual,
            link=self.link,
        )

    def problem_of(self, drawn: Episode) -> BanditProblem:
        """Return what a learner may know of an episode that was drawn, or of a batch."""
        bound, budget = drawn.norm_bound, drawn.variation_budget
        return replace(self.problem(), norm_bound=bound, variation_budget=budget)


def optional_bound(name: str, value: float | None, owner: str) -> float | None:
    """Return a bound of at least 0 as a float; None stays None.

    Raises:
        ValueError: If it is no number in [0, 1e30], or one whose square is lost in rounding.
    """
    if value is None:
        return None
    bound = check_float(name, value, owner, 0, LARGEST)
    if 0 < bound < SMALLEST:
        reject(name, owner, f"0 or at least {SMALLEST:g}", value)
    return bound


def load_task(name: str) -> Callable[..., Task]:
    """Return the class or function that "module:name" names.

    Raises:
        ValueError: If there is no such module, or nothing callable of that name in it.
    """
    rule = 'a Task, or the "module:name" of a class or function that makes one'
    module, _, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not module or not attribute:
        reject("task", "the environment", rule, name)
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, but not one that it imports
        reject("task", "the environment", rule, name)
    made: Callable[..., Task] | None = getattr(found, attribute, None)
    if not callable(made):
        reject("task", "the environment", rule, name)
    return made
