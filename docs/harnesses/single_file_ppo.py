"""PPO in one file, in the manner of CleanRL, learns to explore and exploit two arms.

Nothing here knows bandits: a loop over `SyncVectorEnv`, episode statistics read off
`infos["final_info"]`, a policy without memory. `HistoryObservation` shows that policy the last
plays, and every episode has new functions, so what it learns is how to find the better arm.

    python docs/harnesses/single_file_ppo.py
"""

from collections import deque

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

import wgp_gym  # noqa: F401  registers the environments
from wgp_gym.wrappers import HistoryObservation

SEED, NUM_ENVS, NUM_STEPS, UPDATES = 1, 32, 40, 30
EPOCHS, BATCH, GAMMA, LAMBDA, CLIP, ENTROPY, RATE = 4, 320, 0.95, 0.95, 0.2, 0.01, 3e-3
TASK = {"points_per_dim": 2, "horizon": 20, "change_points": [], "noise_std": 0.05}


def make_env():
    """Make one environment: it draws a new function for every episode."""
    env = gym.make("WGPBandit-Abrupt-v0", **TASK)
    env = HistoryObservation(env, length=4, reward_scale=3.0)
    return gym.wrappers.RecordEpisodeStatistics(env)


def make_envs():
    """Make them all; the next episode starts in the very step that ends one."""
    mode = gym.vector.AutoresetMode.SAME_STEP
    return gym.vector.SyncVectorEnv([make_env] * NUM_ENVS, autoreset_mode=mode)


def mlp(inputs, outputs, gain):
    """Return a small network whose last layer starts at the scale `gain`."""
    hidden = nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()
    network = nn.Sequential(*hidden, nn.Linear(64, outputs))
    for layer, scale in zip(network[::2], (2**0.5, 2**0.5, gain), strict=True):
        nn.init.orthogonal_(layer.weight, scale)
        nn.init.zeros_(layer.bias)
    return network


def finished(infos):
    """Return the returns and the regrets of the episodes that this step has ended."""
    if "final_info" not in infos:
        return [], []
    final = infos["final_info"]
    ended = final["_episode"]
    return final["episode"]["r"][ended].tolist(), final["cumulative_regret"][ended].tolist()


def random_regret(episodes):
    """Return random play's mean regret: the other end of the comparison."""
    envs = make_envs()
    envs.reset(seed=10_000)
    envs.action_space.seed(0)
    regrets = []
    while len(regrets) < episodes:
        regrets += finished(envs.step(envs.action_space.sample())[-1])[1]
    return np.mean(regrets)


def train():
    """Return the mean regret of the last 200 episodes of the training."""
    envs = make_envs()
    size, arms = envs.single_observation_space.shape[0], int(envs.single_action_space.n)
    actor, critic = mlp(size, arms, 0.01), mlp(size, 1, 1.0)
    weights = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(weights, lr=RATE, eps=1e-5)
    returns, regrets = deque(maxlen=200), deque(maxlen=200)
    obs = torch.as_tensor(envs.reset(seed=SEED)[0])
    for update in range(1, UPDATES + 1):
        optimizer.param_groups[0]["lr"] = RATE * (1 - (update - 1) / UPDATES)
        steps = []
        for _ in range(NUM_STEPS):
            with torch.no_grad():
                policy, value = Categorical(logits=actor(obs)), critic(obs)[:, 0]
                action = policy.sample()
            next_obs, reward, terminated, truncated, infos = envs.step(action.numpy())
            done = torch.as_tensor(terminated | truncated).float()
            reward = torch.as_tensor(reward).float()
            steps.append((obs, action, policy.log_prob(action), value, reward, done))
            obs = torch.as_tensor(next_obs)
            for kept, ended in zip((returns, regrets), finished(infos), strict=True):
                kept.extend(ended)
        b_obs, b_action, b_logprob, b_value, rewards, dones = map(
            torch.stack, zip(*steps, strict=True)
        )
        with torch.no_grad():
            next_value = critic(obs)[:, 0]
        advantages, last = torch.zeros_like(rewards), torch.zeros(NUM_ENVS)
        for t in reversed(range(NUM_STEPS)):
            after = next_value if t == NUM_STEPS - 1 else b_value[t + 1]
            delta = rewards[t] + GAMMA * after * (1 - dones[t]) - b_value[t]
            advantages[t] = last = delta + GAMMA * LAMBDA * (1 - dones[t]) * last
        targets = advantages + b_value
        flat = [x.flatten(0, 1) for x in (b_obs, b_action, b_logprob, advantages, targets)]
        for _ in range(EPOCHS):
            for rows in torch.randperm(NUM_ENVS * NUM_STEPS).split(BATCH):
                o, a, old, advantage, target = (x[rows] for x in flat)
                advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                policy, value = Categorical(logits=actor(o)), critic(o)[:, 0]
                ratio = (policy.log_prob(a) - old).exp()
                gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
                loss = -gain.mean() + 0.25 * (value - target).square().mean()
                loss = loss - ENTROPY * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(weights, 0.5)
                optimizer.step()
        if update % 5 == 0:
            print(f"update {update}: return {np.mean(returns):.2f}, regret {np.mean(regrets):.2f}")
    return np.mean(regrets)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    print(f"mean regret per episode: trained {train():.2f}, random {random_regret(320):.2f}")
