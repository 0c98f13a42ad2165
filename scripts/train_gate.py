"""Train a gate of learned-wgp-ucb: python -m scripts.train_gate --seconds 1100 --out gate.npz."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from wgp_agents.algorithms.learned.gate import write_gate
from wgp_agents.training.gate import GateSettings, GateTrainer

FIRST_TRAINING = 10**9
EVERY = 10  # rounds between two copies


def main() -> None:
    """Train for some time, and write the gate every few rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1100.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--width", type=float, default=1.5, help="the bound's, in the notes")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    settings = GateSettings()
    first = FIRST_TRAINING + given.seed * 10**8
    trainer, started, losses, count = GateTrainer(settings, given.seed, first), time.time(), [], 0
    while (behind := (time.time() - started) / given.seconds) < 1.0:
        losses.append(trainer.round(behind))
        count += 1
        if count % EVERY == 0:
            untrained, trained = np.mean(losses[-EVERY:], axis=0)
            print(
                f"{count} rounds, {behind:.0%}: loss {trained:.3f}, untrained {untrained:.3f}",
                flush=True,
            )
            notes = {"seed": given.seed, "steps": trainer.steps, "rounds": count}
            notes |= {"seconds": round(time.time() - started)}
            write_gate(given.out, trainer.gate(given.width, notes))


if __name__ == "__main__":
    main()
