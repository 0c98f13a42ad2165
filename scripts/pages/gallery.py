"""Write docs/gallery.md and docs/gallery/: every registered id with its picture.

    python -m scripts.pages.gallery

All of it comes from `wgp_gym.registration.ENVIRONMENTS`, the tasks' docstrings and signatures. A
test compares the page with `page()` and looks for the pictures: run this for a new id.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import gymnasium
import numpy as np
from PIL import Image

import wgp_gym  # noqa: F401  (registers the ids)
from wgp_agents.core.keywords import keywords
from wgp_gym.envs.task import load_task
from wgp_gym.registration import ENVIRONMENTS, EnvironmentEntry

DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURES = DOCS / "gallery.md", DOCS / "gallery"
STEPS, SEED, COLOURS = 120, 1, 64  # the synthetic tasks change at 100

TOP = """# Gallery

Every environment that `import wgp_gym` registers, as it is without arguments, after {steps}
random plays. The picture is a scorer's view (`render_mode="rgb_array"`): an agent sees its own
plays and rewards. What the keywords mean: [environments.md](environments.md).
"""
PAPER = "[Deng22] Deng et al. Weighted GP Bandits for Non-stationary Environments. AISTATS 2022."


def page() -> str:
    """Return the text of the gallery."""
    return "\n".join([TOP.format(steps=STEPS), *map(section, ENVIRONMENTS)])


def section(entry: EnvironmentEntry) -> str:
    """Return what the gallery says of one id."""
    task = load_task(entry.task)
    lines = [
        f"## {entry.id}\n",
        f"{sentence(entry.summary)}\n",
        f"![{entry.id} after {STEPS} plays](gallery/{entry.id}.png)\n",
        *(text + "\n" for text in description(task)),
        f"- **As it is**: {facts(entry)}",
        f"- **Keywords**: {keywords_of(entry)}",
        f"- **Source**: {' '.join(sources(task))}\n",
    ]
    return "\n".join(lines)


def sentence(text: str) -> str:
    """Return a text that begins and ends as a sentence does."""
    return f"{text[0].upper()}{text[1:]}."


def description(task: object) -> list[str]:
    """Return the paragraphs and lists of a task's docstring, up to its arguments."""
    text = (inspect.getdoc(task) or "").partition("\nArgs:")[0]
    return [paragraph(part) for part in text.strip().split("\n\n")]


def paragraph(text: str) -> str:
    """Return a paragraph of a docstring, or each entry of a list, in lines of one width."""
    entries = re.split(r"\n(?=- )", text)
    indent = "  " * text.startswith("- ")
    return "\n".join(textwrap.fill(plain(one), 120, subsequent_indent=indent) for one in entries)


def plain(text: str) -> str:
    """Return a text of a docstring in one line, with stars that Markdown shows."""
    return " ".join(text.split()).replace("*", "\\*")


def facts(entry: EnvironmentEntry) -> str:
    """Return T, the arms and the noise of an id without arguments."""
    problem = gymnasium.make(entry.id).get_wrapper_attr("problem")
    noise = "" if problem.noise_scale is None else f", noise scale {problem.noise_scale:g}"
    return f"T = {problem.horizon}, {len(problem.domain)} arms{noise}"


def keywords_of(entry: EnvironmentEntry) -> str:
    """Return the keywords that an id takes beside its own, and their defaults."""
    task = load_task(entry.task)
    stated = inspect.signature(task).parameters
    taken = [name for name in keywords(task) if name not in entry.kwargs]
    defaults = (stated[name].default if name in stated else None for name in taken)
    unsaid = None, inspect.Parameter.empty
    told = ("" if default in unsaid else f"={default!r}" for default in defaults)
    named = [f"`{name}{default}`" for name, default in zip(taken, told, strict=True)]
    drawable = getattr(task, "drawable", {})  # by a function that returns the task: none
    laws = ["`change_rate`"] * ("change_points" in drawable) + ["`told`"] * bool(drawable)
    return ", ".join(named + laws)


def sources(task: object) -> list[str]:
    """Return the references of a task's module, the paper among them where it is named."""
    module = inspect.getmodule(task)
    text = inspect.getdoc(module) or ""
    listed = text.partition("References:\n")[2].strip()
    found = [plain(one) for one in re.split(r"\n *(?=\[)", listed) if one and ": see `" not in one]
    named = "[Deng22]" in text or "[Deng22]" in (inspect.getdoc(task) or "")
    return ([PAPER] if named else []) + found or ["ours"]


def draw() -> None:
    """Draw the picture of every id, and remove those of ids that are gone."""
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.png"):
        old.unlink()
    for entry in ENVIRONMENTS:
        env = gymnasium.make(entry.id, render_mode="rgb_array")
        env.reset(seed=SEED)
        env.action_space.seed(SEED)
        for _ in range(STEPS):
            env.step(env.action_space.sample())
        frame = Image.fromarray(np.asarray(env.render(), np.uint8))
        frame.quantize(COLOURS).save(PICTURES / f"{entry.id}.png", optimize=True)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    draw()
