"""TorchRL: an environment by its id, and a vector environment in `GymWrapper`.

Run it with `python docs/harnesses/torchrl_env.py`. A policy that plays arm t at step t is rolled
out by TorchRL, then its actions are played again in plain Gymnasium: rewards and regrets agree.
TorchRL resets by itself, hence `AutoresetMode.DISABLED`. It reads `info` where the values are
arrays, which is so in a vector environment.
"""

from __future__ import annotations

import gymnasium
import torch
from gymnasium.vector import AutoresetMode
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.envs import EnvBase, GymEnv, GymWrapper, check_env_specs

import wgp_gym  # noqa: F401  (registers the environments)

ID, HORIZON, NUM_ENVS, SEED = "WGPBandit-Abrupt-v0", 50, 4, 7


def sweep(observation: torch.Tensor) -> torch.Tensor:
    """Play arm t at step t: the observation begins with t / T."""
    return (observation[..., 0] * HORIZON).round().long()


def play(env: EnvBase) -> TensorDictBase:
    """Check an environment against its specs, then play one episode from a fixed seed."""
    check_env_specs(env)
    policy = TensorDictModule(sweep, in_keys=["observation"], out_keys=["action"])
    start = env.reset(seed=SEED)
    return env.rollout(HORIZON, policy=policy, tensordict=start, auto_reset=False)["next"]


def replay(seed: int) -> tuple[float, float]:
    """Play the same actions without TorchRL; return the summed reward and the final regret."""
    env = gymnasium.make(ID, horizon=HORIZON)
    env.reset(seed=seed)
    steps = [env.step(t) for t in range(HORIZON)]
    return sum(step[1] for step in steps), steps[-1][4]["cumulative_regret"]


def main() -> None:
    """Play one environment, then four at once; sub-environment i has the seed `SEED` + i."""
    one = play(GymEnv(ID, horizon=HORIZON, categorical_action_encoding=True))
    reward = one["reward"].sum().item()

    disabled = {"autoreset_mode": AutoresetMode.DISABLED}
    vector = gymnasium.make_vec(ID, NUM_ENVS, "sync", disabled, horizon=HORIZON)
    env = GymWrapper(vector, categorical_action_encoding=True).auto_register_info_dict()
    regrets = play(env)["cumulative_regret"][:, -1]

    plain = [replay(SEED + i) for i in range(NUM_ENVS)]
    difference = (regrets - torch.tensor([regret for _, regret in plain])).abs().max().item()
    print(
        f"reward: TorchRL {reward:.4f}, Gymnasium {plain[0][0]:.4f}; "
        f"mean regret {regrets.mean().item():.4f}, largest difference {difference:.1e}"
    )


if __name__ == "__main__":
    main()
