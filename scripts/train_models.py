"""Train the models that the package brings: every algorithm on both synthetic tasks.

Usage: `python scripts/train_models.py [--jobs N] [--out FOLDER]`

The settings, and with them the steps, stand in
`agents/wgp_agents/algorithms/learned/sb3/settings.toml`. Each
training is a process of its own, with one thread. They are trained in `results/models`, where a
second call goes on after an interrupt, and take the place of those in FOLDER when all are done.
"""

import argparse
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from joblib import cpu_count
from tqdm import tqdm

from wgp_agents.algorithms.learned.sb3.model import SHIPPED
from wgp_agents.algorithms.learned.weights_file import model_file
from wgp_agents.training.rivals import RIVALS, TASKS

FOLDER = Path("results/models")
WORK = [(rival.agent, task) for rival in RIVALS if rival.trained for task in TASKS]


def train(algo: str, task: str, folder: Path) -> str:
    """Train one model; return a line that says how it did."""
    started = time.perf_counter()
    command = [str(Path(sys.executable).with_name("wgp-gym")), "train", "--algo", algo]
    command += ["--env", task, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return f"{task} {algo}, {time.perf_counter() - started:.0f} s. {done.stdout.splitlines()[0]}"


def move(folder: Path, out: Path) -> None:
    """Let the models, their notes and their curves take the place of older ones."""
    out.mkdir(parents=True, exist_ok=True)
    for algo, task in WORK:
        model = folder / model_file(algo, task, 0, "zip")
        for file in (model, model.with_suffix(".json"), model.with_suffix(".csv")):
            shutil.move(file, out / file.name)


def main() -> None:
    """Train them all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="trainings at once")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="folder of the models")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.jobs) as pool:
        trainings = [pool.submit(train, algo, task, FOLDER) for algo, task in WORK]
        try:
            for done in tqdm(as_completed(trainings), total=len(WORK), unit="model"):
                tqdm.write(done.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    move(FOLDER, options.out)


if __name__ == "__main__":
    main()
