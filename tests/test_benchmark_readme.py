"""The code in the READMEs runs as it stands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import pytest

from wgp_agents.benchmark.declaration import declare, read_declaration
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.registry import AGENTS

ROOT = Path(__file__).parent.parent


def blocks(name: str) -> list[str]:
    """Return the Python blocks of a Markdown file."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)


PAGES = ["README.md", "agents/README.md", "docs/live.md", "docs/harnesses/README.md"]


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(name)
    monkeypatch.chdir(tmp_path)  # what they write is not for the tree
    assert found
    module = ModuleType("readme_blocks")  # where their classes stand, so that they can be pickled
    monkeypatch.setitem(sys.modules, "readme_blocks", module)
    try:
        for block in found:
            exec(block, module.__dict__)
    finally:
        AGENTS.pop("greedy", None)  # which a block registers


def test_the_new_agent_of_the_readme_keeps_the_contract() -> None:
    namespace: dict[str, Any] = {}
    (block,) = (one for one in blocks("agents/README.md") if "class DiscountedGreedy" in one)
    exec(block, namespace)
    make_agent = namespace["DiscountedGreedy"]
    mode = "vector_entry_point"
    many = gymnasium.make_vec("WGPBandit-Abrupt-v0", 3, vectorization_mode=mode)
    batch = rollout(make_agent(many), many, seed=5)
    for i in range(3):
        env = gymnasium.make("WGPBandit-Abrupt-v0")
        alone = rollout(make_agent(env), env, seed=5 + i)
        np.testing.assert_array_equal(alone["action"][0], batch["action"][i])


def test_every_agent_and_environment_is_in_the_readme() -> None:
    from wgp_agents import names
    from wgp_gym.registration import ENVIRONMENTS

    text = (ROOT / "README.md").read_text()
    missing = [n for n in [*names(), *(e.id for e in ENVIRONMENTS)] if f"`{n}`" not in text]
    assert not missing


def test_the_results_in_the_readme_are_of_the_shipped_figure() -> None:
    made = declare(read_declaration("figure1"))
    text = (ROOT / "README.md").read_text()
    block = text.partition("<!-- results -->")[2].partition("<!-- /results -->")[0]
    assert f"runs: {made.seeds} (" in block
    table = [line.split("|")[1:-1] for line in block.splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line] for line in table)
    assert head == ["agent", *(task.name for task in made.tasks)]
    shown = [row[0] for row in rows if len(row) == len(head)]
    assert shown[: len(made.agents)] == [agent.label for agent in made.agents]


def test_nothing_is_left_to_fill_in_and_every_linked_file_exists() -> None:
    pages = ("README.md", "agents/README.md", "CONTRIBUTING.md", "docs/fidelity.md")
    for name in (*pages, "docs/experiments.md"):
        text = (ROOT / name).read_text()
        assert not re.findall(r"\b[A-Z]+_(?:TABLE|CPU)\b", text)
        links = re.findall(r"\]\(([^)#:]+)\)", text)
        missing = [link for link in links if not ((ROOT / name).parent / link).exists()]
        assert not missing
