"""rl-zoo3 trains PPO with the settings in `rl_zoo3.yml`; its model then plays as one of our agents.

The task here is a small one, two arms and 20 steps, so that seconds suffice. For the whole task
leave out `--env-kwargs` and `-n`.

    python docs/harnesses/zoo_ppo.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from stable_baselines3 import PPO

import wgp_agents
import wgp_gym  # noqa: F401  registers the environments
from wgp_agents.benchmark.rollout import make_vector, rollout

ID, SETTINGS = "WGPBandit-Abrupt-v0", Path(__file__).with_name("rl_zoo3.yml")
TASK = {"points_per_dim": 2, "horizon": 20, "change_points": [], "noise_std": 0.05}


def train(folder, steps):
    """Run rl-zoo3's command; return its model, and the regrets that its monitors have written."""
    task = [f"{name}:{value}" for name, value in TASK.items()]
    command = ["-m", "rl_zoo3.train", "--algo", "ppo", "--env", ID, "--gym-packages", "wgp_gym"]
    command += ["-conf", str(SETTINGS), "-n", str(steps), "--seed", "2", "-f", folder]
    command += ["--log-interval", "50", "--env-kwargs", *task]
    subprocess.run([sys.executable, *command], check=True)
    trained = Path(folder, "ppo", f"{ID}_1")
    tables = [np.loadtxt(file, delimiter=",", skiprows=2) for file in trained.glob("*.monitor.csv")]
    return PPO.load(trained / f"{ID}.zip", device="cpu"), np.stack([t[:, 3] for t in tables])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        model, regrets = train(folder, steps=12_800)
    first, last = regrets[:, :8].mean(), regrets[:, -8:].mean()
    print(f"regret per episode in the training: first 8 {first:.2f}, last 8 {last:.2f}")
    env = make_vector(ID, 400, **TASK)
    agents = {
        "trained": wgp_agents.make("ppo", env, model=model, reward_scale=3.0),
        "random": wgp_agents.make("random", env),
    }
    found = {
        name: rollout(agent, env, seed=10_000)["cumulative_regret"][:, -1].mean()
        for name, agent in agents.items()
    }
    print("mean regret per episode:", ", ".join(f"{name} {r:.2f}" for name, r in found.items()))
