"""What fades for ever must not become denormal: a processor takes many times as long with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wgp_agents
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

DOMAIN = np.linspace(0.0, 1.0, 12)[:, None]
KERNEL, LAMBDA, ARM = SquaredExponential(0.2), 0.01, 0  # of its features one is not 0
NORMAL = np.finfo(float).tiny


def played_for_ever(name: str, steps: int, **parameters: Any) -> Any:
    """Return an agent that was told of each arm once, and then `steps` times of one arm."""
    problem = BanditProblem(KERNEL, DOMAIN, 500, 0.1, 1.0, 1.0, reward_range=(0.0, 1.0))
    agent = wgp_agents.make(name, problem, **parameters)
    agent.reset(0)
    for arm in range(len(DOMAIN)):
        agent.observe(arm, 0.1 * arm)
    for _ in range(steps):
        agent.observe(ARM, 0.7)
    return agent


def denormals(agent: Any) -> list[str]:
    """Return the arrays of an agent's state that hold a denormal number."""
    floats = {
        path: entry
        for path, entry in agent.state_dict().items()
        if isinstance(entry, np.ndarray) and entry.dtype == np.float64
    }
    return [path for path, x in floats.items() if ((x != 0) & (np.abs(x) < NORMAL)).any()]


def posterior_of_one_arm(weight: float) -> tuple[Array, Array]:
    """Return mean and std of plays of one arm that paid 0.7, of this summed weight, by kernels."""
    K = KERNEL(DOMAIN, DOMAIN)
    share = K[:, ARM] / (K[ARM, ARM] + LAMBDA / weight)
    return 0.7 * share, np.sqrt(K.diagonal() - share * K[:, ARM])


@pytest.mark.slow
@pytest.mark.parametrize(("discount", "steps"), [(0.5, 1_050), (0.97, 24_000), (0.9, 200_000)])
def test_weights_that_fade_leave_no_denormal_number(discount: float, steps: int) -> None:
    agent = played_for_ever("wgp-ucb", steps, discount=discount, regularization=LAMBDA)
    assert denormals(agent) == []
    mean, std = posterior_of_one_arm(1.0 / (1.0 - discount))
    found = agent.posterior()
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.std, std, atol=1e-5)


def test_weights_of_several_ages_leave_none() -> None:
    assert denormals(played_for_ever("ui-gp-ucb", 6_000)) == []


def test_counts_that_fade_leave_no_denormal_number() -> None:
    assert denormals(played_for_ever("d-ts", 10_000, discount=0.9)) == []
