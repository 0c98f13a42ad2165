"""A task with laws in the place of numbers: each episode is one of a task that was drawn first.

So all that a scorer is told is as exact as it is for a task of fixed numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from wgp_gym.arrays import kept
from wgp_gym.envs.batch import join, stack
from wgp_gym.envs.episode import BY_POSITION, Episode
from wgp_gym.envs.laws import RATE, TIMES, TOLD, Drawn, Range, is_random, laws_of, rate_of
from wgp_gym.envs.noise import Noise
from wgp_gym.envs.task import Task, load_task
from wgp_gym.problem import BanditProblem
from wgp_gym.schedules import knot_per_step
from wgp_gym.streams import FUNCTIONS, LAWS, Stream
from wgp_gym.types import Array, Indices, Json
from wgp_gym.validation import check_choice, reject, shown

__all__ = ["RandomTask", "make_task"]

NOISE = "noise_std"
TOLD_CHOICES = ("drawn", "law")
PER_STEP = 6  # numbers that are kept of each step, where change times are an episode's own


@dataclass(frozen=True)
class World:
    """What was drawn of one episode.

    Attributes:
        values: What makes its functions: the drawn parameters but for those below, by name.
        noise_std: The deviation of its noise; None where it is not drawn.
        knots: How many changes there were up to each step, `(T,)`; None where these are not drawn.
    """

    values: dict[str, Drawn]
    noise_std: float | None
    knots: Indices | None


class RandomTask(Task):
    """A task of which some parameters are drawn anew for each episode, from a stream of their own.

    With a number in the place of a law, episodes of the same seeds keep all else that is drawn;
    and an episode's functions and noise are those of the task of fixed numbers, made with what
    was drawn for it.

    Args:
        made: The task's class, whose `drawable` parameters may be laws.
        **parameters: Its arguments. In the place of a number [low, high], drawn log-uniformly;
            of a kernel's name a list of names, drawn uniformly; of change points "random", with
            `change_rate`: the probability of a change at each step from the second on, or
            [low, high]. `told`: "drawn": the problem says what was drawn for an episode; "law":
            no more than is known of all: no noise scale where it is drawn, the first kernel with
            the geometric mean of the lengthscales, and no norm bound and variation budget but
            those that were asked for.

    Attributes:
        told: "drawn" or "law".
        shares_kernel: Whether all episodes have the same kernel.

    Raises:
        ValueError: If a law is none, a parameter is out of its range at an end of its law, or
            kernels are drawn for a box.
    """

    def __init__(self, made: type[Task], **parameters: Json) -> None:
        owner = made.__name__
        given: dict[str, Json] = {name: kept(value) for name, value in parameters.items()}
        self.told = check_choice(TOLD, given.pop(TOLD, "drawn"), owner, TOLD_CHOICES)
        self._make: Callable[..., Task] = made
        self._drawable = made.drawable
        self._rate = rate_of(given.pop(RATE, None), given.get(TIMES), owner)
        self._laws = laws_of(made.drawable, given, owner)
        self._fixed = {name: value for name, value in given.items() if name not in self._laws}
        if self._rate is not None:
            del self._fixed[TIMES]
        if NOISE in self._laws:  # which is drawn beside the functions
            self._fixed[NOISE] = self._laws[NOISE].typical
        values = {name: law.typical for name, law in self._laws.items()}
        typical = self._plain(values, 0)
        only_noise = self._rate is None and self._laws.keys() <= {NOISE}
        self._latest: tuple[object, Task] = (() if only_noise else None), typical  # and its key
        # As large as an episode may get; each one refuses what is out of its range.
        self.shares_kernel, self._kept_numbers = True, 0
        for task in self._ends(typical.horizon):
            check_setting(task, typical, owner)
            self.shares_kernel &= task.kernel == typical.kernel
            self._kept_numbers = max(self._kept_numbers, task.kept_numbers)
        if typical.continuous and not self.shares_kernel:
            rule = "False where the kernel or its lengthscale is drawn"
            reject("continuous", owner, rule, True)
        times = knot_per_step(typical.horizon)
        super().__init__(
            kernel=typical.kernel,
            domain=typical.domain,
            schedule=typical.schedule if self._rate is None else times,
            noise=self._unit_noise(values) if NOISE in self._laws else typical.noise,
            norm_bound=typical.norm_bound,
            variation_budget=typical.variation_budget,
            continuous=typical.continuous,
            arm_names=typical.arm_names,
            reward_range=typical.reward_range,
            contextual=typical.contextual,
            link=typical.link,
            masked=typical.masked,
        )

    def _plain(self, values: Mapping[str, Drawn], changes: int | Indices) -> Task:
        """Return the task of fixed numbers: with these change points, or with so many."""
        given = {**self._fixed, **values}
        if self._rate is not None:
            steps = np.arange(2, 2 + changes) if isinstance(changes, int) else changes
            given[TIMES] = steps.tolist()
        return self._make(**given)

    def _unit_noise(self, values: Mapping[str, Drawn]) -> Noise:
        """Return the noise of deviation 1, which an episode's own multiplies."""
        return self._plain({**values, NOISE: 1.0}, 0).noise

    def _ends(self, horizon: int) -> Iterator[Task]:
        """Make the tasks at the ends of all laws, the ranges' all low or all high."""
        choices = {name: law.ends for name, law in self._laws.items()}
        ranges = [name for name, ends in choices.items() if self._drawable[name] == "range"]
        others = [name for name in choices if name not in ranges]
        most = 0 if self._rate is None else most_changes(self._rate, horizon)
        for end, changes in itertools.product((0, 1), sorted({0, most})):
            for chosen in itertools.product(*(choices[name] for name in others)):
                values = dict(zip(others, chosen, strict=True))
                yield self._plain(values | {name: choices[name][end] for name in ranges}, changes)

    @property
    def _by_step(self) -> bool:
        """Whether a task is told step by step, so that it must know when its functions change."""
        return self.contextual or self.masked

    @property
    def tells_one_kernel(self) -> bool:
        """Whether learners of different episodes are told the same kernel."""
        return self.told == "law" or self.shares_kernel

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode, about and at most."""
        per_step = 0 if self._rate is None else PER_STEP * self.horizon
        return self._kept_numbers + per_step

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw one episode, what it is one of from a stream beside."""
        return self._drawn([self._world(rng.spawn(1)[0])], [rng]).of_batch(0)

    def draw_episodes(self, stream: Stream) -> Episode:
        """Draw B episodes. See `Task`."""
        worlds = [self._world(rng) for rng in stream(LAWS)]
        return self._drawn(worlds, stream(FUNCTIONS))

    def _world(self, rng: np.random.Generator) -> World:
        """Draw what an episode is one of.

        Each parameter has its number of the stream, whether there is a law for it or not: so that
        no law moves what others give.
        """
        rate, *uniform = rng.random(1 + len(self._drawable)).tolist()
        pairs = zip(self._drawable, uniform, strict=True)
        values = {name: self._laws[name].at(u) for name, u in pairs if name in self._laws}
        noise = values.pop(NOISE, None)
        noise_std = None if noise is None else float(noise)
        if self._rate is None:
            return World(values, noise_std, None)
        chance = self._rate.at(rate) if isinstance(self._rate, Range) else self._rate
        changes = rng.random(self.horizon) < chance
        changes[0] = False
        return World(values, noise_std, np.cumsum(changes))

    def _drawn(self, worlds: Sequence[World], generators: Sequence[np.random.Generator]) -> Episode:
        """Draw an episode of each world, those of the same task at once."""
        alike: dict[object, list[int]] = {}
        for i, world in enumerate(worlds):
            alike.setdefault(self._key(world), []).append(i)
        drawn: dict[int, Episode] = {}
        for rows in alike.values():
            task = self._task(worlds[rows[0]])
            batch = task.draw_batch([generators[i] for i in rows])
            for place, i in enumerate(rows):
                one = replace(batch.of_batch(place), kernels=(task.kernel,))
                drawn[i] = self._with_world(one, worlds[i])
        return join([stack([drawn[i] for i in range(len(worlds))])])

    def _key(self, world: World) -> object:
        """Return what tells tasks apart whose functions are drawn in another way.

        Neither noise nor, where arms stay, the time of a change has a part in that.
        """
        values = tuple(world.values.items())
        if world.knots is None:
            return values
        return values, world.knots.tobytes() if self._by_step else world.knots[-1]

    def _task(self, world: World) -> Task:
        """Return a task that draws the functions of this world: the latest one, where it does."""
        key = self._key(world)
        if self._latest[0] != key:
            self._latest = key, self._of_world(world)
        return self._latest[1]

    def _of_world(self, world: World) -> Task:
        """Return a task that draws the functions of this world."""
        if world.knots is None:
            return self._plain(world.values, 0)
        steps = np.flatnonzero(np.diff(world.knots)) + 2
        return self._plain(world.values, steps if self._by_step else len(steps))

    def _with_world(self, episode: Episode, world: World) -> Episode:
        """Return an episode with its own noise and change times, told step by step."""
        if world.noise_std is not None:
            episode = replace(episode, noise_scale=world.noise_std)
        knots = world.knots
        if knots is None:
            return episode
        told = () if self._by_step else BY_POSITION  # where each knot is a position so far
        return replace(
            episode, knots=knots, **{name: getattr(episode, name)[knots] for name in told}
        )

    def problem(self) -> BanditProblem:
        """Return what a learner may know of all episodes."""
        known = super().problem()
        return replace(known, noise_scale=None) if NOISE in self._laws else known

    def problem_of(self, drawn: Episode) -> BanditProblem:
        """Return what a learner may know of an episode, or of a batch that shares a kernel."""
        if self.told == "law":
            return self.problem()
        assert drawn.kernels is not None
        known = super().problem_of(drawn)
        scale: float | Array | None = self.noise.scale
        if scale is not None and drawn.noise_scale is not None:
            scale = scale * drawn.noise_scale
        return replace(known, kernel=drawn.kernels[0], noise_scale=scale)


def check_setting(task: Task, other: Task, owner: str) -> None:
    """Raise ValueError if a law draws what spaces follow from, or how long an episode is."""
    same = task.horizon == other.horizon and np.array_equal(task.domain, other.domain)
    same &= (task.continuous, task.contextual) == (other.continuous, other.contextual)
    if not same:
        rule = "parameters that leave T and the arms as they are"
        reject("drawable", owner, rule, task.horizon)


def most_changes(rate: Range | float, horizon: int) -> int:
    """Return how many changes no episode exceeds.

    By Bernstein's inequality more than m + x, m the mean, x = 10 m^{1/2} + 50, have a probability
    of at most exp(-x^2 / (2 m + 2 x / 3)) <= exp(-50).
    """
    highest = rate.high if isinstance(rate, Range) else rate
    mean = highest * (horizon - 1)
    return min(horizon - 1, math.ceil(mean + 10 * math.sqrt(mean) + 50))


def make_task(task: str | Task, **parameters: Json) -> Task:
    """Return the task that is named, made with its parameters; a `Task` is returned as it is.

    Where a parameter is a law, or `told` is "law", it is a `RandomTask`.

    Raises:
        ValueError: If there is no such task, a parameter is out of its range, or a made task is
            given parameters.
    """
    if isinstance(task, Task):
        if parameters:
            given = shown(parameters)
            raise ValueError(f"A task that is made already takes no parameters: {given}.")
        return task
    named = load_task(task)
    if isinstance(named, type) and issubclass(named, Task) and named.drawable:
        made = with_laws(named, parameters)
    else:
        made = named(**parameters)
    if not isinstance(made, Task):
        reject("task", "the environment", "the name of what makes a Task", made)
    return made


def with_laws(made: type[Task], parameters: dict[str, Json]) -> Task:
    """Return a task of this class, a `RandomTask` where anything is drawn or hidden."""
    plain = {name: value for name, value in parameters.items() if name not in (TOLD, RATE)}
    told, rate = parameters.get(TOLD, TOLD_CHOICES[0]), parameters.get(RATE)
    default = isinstance(told, str) and told == TOLD_CHOICES[0]
    random = rate is not None or is_random(plain.get(TIMES))
    if default and not random and not laws_of(made.drawable, plain, made.__name__):
        make: Callable[..., Task] = made
        return make(**plain)
    return RandomTask(made, **parameters)
