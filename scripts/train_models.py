"""Train the models that the package brings, on both synthetic tasks or on random worlds.

Usage: `python -m scripts.train_models [--jobs N]`

The steps of the policies stand in `agents/wgp_agents/algorithms/learned/sb3/settings.toml`, the
seconds of the others in `agents/wgp_agents/training/rivals.py`. They are trained in
`results/models`, where a second call goes on after an interrupt, and take the place of the
package's when all are done.
"""

import argparse
import shutil
from pathlib import Path

from joblib import cpu_count

from wgp_agents.training.match import train_all
from wgp_agents.training.rivals import Match

FOLDER = Path("results/models")


def main() -> None:
    """Train them all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="trainings at once")
    options = parser.parse_args()
    work = Match().all_trainings
    train_all(work, FOLDER, options.jobs)
    for training in work:
        assert training.shipped is not None
        file = FOLDER / training.file_name
        endings = (".json", ".csv") if file.suffix == ".zip" else ()
        for ending in (file.suffix, *endings):
            shutil.move(file.with_suffix(ending), training.shipped.with_suffix(ending))


if __name__ == "__main__":
    main()
