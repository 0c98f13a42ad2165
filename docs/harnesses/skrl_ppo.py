"""skrl's `wrap_env` takes our environments as they are, single and vector; skrl's PPO trains there.

First the same arms are played in single environments and in the native vector environment.
Then PPO, shown the last plays, learns to find the better of two arms.

    python docs/harnesses/skrl_ppo.py
"""

import gymnasium
import numpy as np
import torch
from skrl.agents.torch.ppo import PPO, PPO_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
from skrl.utils import set_seed
from skrl.utils.model_instantiators.torch import categorical_model, deterministic_model

import wgp_gym  # noqa: F401  registers the environments
from wgp_gym.wrappers import VectorHistoryObservation

ID, HORIZON, SEED = "WGPBandit-Abrupt-v0", 20, 3
TASK = {"points_per_dim": 2, "horizon": HORIZON, "change_points": [], "noise_std": 0.05}


def vector(num_envs):
    """Return the native vector environment."""
    return gymnasium.make_vec(ID, num_envs, vectorization_mode="vector_entry_point", **TASK)


def play(env, choose):
    """Play one episode of each environment; return the regrets."""
    observations, _ = env.reset()
    for t in range(HORIZON):
        observations, _, _, _, infos = env.step(choose(observations, t))
    return np.atleast_1d(infos["cumulative_regret"])


def check(num_envs=4):
    """Return the largest difference between single environments and the vector one."""
    set_seed(SEED)
    arms = torch.randint(2, (HORIZON, num_envs, 1))
    together = play(wrap_env(vector(num_envs), verbose=False), lambda _, t: arms[t])
    difference = 0.0
    for i in range(num_envs):
        set_seed(SEED + i)  # skrl resets an environment with this seed
        env = wrap_env(gymnasium.make(ID, **TASK), verbose=False)
        alone = play(env, lambda _, t, i=i: arms[t, i : i + 1])
        difference = max(difference, abs(float(alone[0] - together[i])))
    return difference, together.tolist()


def train(env, steps, rollouts=42):
    """Return PPO, trained for so many steps of the vector environment."""
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    layers = {"name": "net", "input": "OBSERVATIONS", "layers": [64, 64], "activations": "tanh"}
    models = {
        "policy": categorical_model(**spaces, network=[layers], output="ACTIONS"),
        "value": deterministic_model(**spaces, network=[layers], output="ONE"),
    }
    cfg = PPO_CFG(
        rollouts=rollouts,
        learning_epochs=6,
        mini_batches=4,
        learning_rate=3e-3,
        discount_factor=0.9,
        value_loss_scale=0.5,
        rewards_shaper=lambda rewards, *_: rewards / 3,
        time_limit_bootstrap=True,  # without it, values leak over the end of an episode
    )
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=rollouts, num_envs=env.num_envs)
    agent = PPO(models=models, memory=memory, cfg=cfg, **spaces)
    trainer = SequentialTrainerCfg(timesteps=steps, headless=True, disable_progressbar=True)
    SequentialTrainer(cfg=trainer, env=env, agents=agent).train()
    return agent


def policy_of(agent):
    """Return what the trained agent draws, as `play` asks for it."""
    return lambda observations, t: agent.act(observations, None, timestep=t, timesteps=HORIZON)[0]


def history(num_envs):
    """Return the vector environment whose observations show the last 4 plays."""
    return wrap_env(VectorHistoryObservation(vector(num_envs), 4, reward_scale=3.0), verbose=False)


if __name__ == "__main__":
    difference, regrets = check()
    print(f"single and vector: regrets {regrets}, largest difference {difference}")
    set_seed(SEED)
    agent = train(history(32), steps=42 * 25)
    agent.enable_training_mode(False)
    set_seed(1_000)  # both are played on the same 400 episodes, which the training has not seen
    with torch.no_grad():
        trained = play(history(400), policy_of(agent)).mean()
    set_seed(1_000)
    random = play(history(400), lambda observations, _: torch.randint(2, (400, 1))).mean()
    print(f"mean regret per episode: trained {trained:.2f}, random {random:.2f}")
