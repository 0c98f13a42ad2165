"""What the pages say agrees with the package: names, results, the gallery, notebooks, the API."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from test_docs_snippets import ROOT, blocks, written

from scripts.pages import api, gallery, notebooks
from wgp_agents import Agent, names
from wgp_agents.benchmark.declaration import declare, read_declaration
from wgp_agents.benchmark.rollout import rollout
from wgp_gym.registration import ENVIRONMENTS

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.py"))


NEW_AGENTS = [
    ("agents/README.md", "DiscountedGreedy"),
    ("docs/start/researcher.md", "FadingGreedy"),
]


def new_agent(page: str, name: str) -> Callable[..., Agent]:
    """Return the class of a page's example agent."""
    (block,) = (code for _, code in blocks(page) if f"class {name}" in code)
    namespace: dict[str, Any] = {"np": np}
    exec(block.partition("\n\n\nmine =")[0], namespace)
    made: Callable[..., Agent] = namespace[name]
    return made


@pytest.mark.parametrize(("page", "name"), NEW_AGENTS)
def test_the_new_agent_of_a_page_keeps_the_contract(page: str, name: str) -> None:
    make_agent = new_agent(page, name)
    mode = "vector_entry_point"
    many = gymnasium.make_vec("WGPBandit-Abrupt-v0", 3, vectorization_mode=mode)
    batch = rollout(make_agent(many), many, seed=5)
    for i in range(3):
        env = gymnasium.make("WGPBandit-Abrupt-v0")
        alone = rollout(make_agent(env), env, seed=5 + i)
        np.testing.assert_array_equal(alone["action"][0], batch["action"][i])


@pytest.mark.parametrize(("page", "name"), NEW_AGENTS)
def test_the_new_agent_of_a_page_refuses_what_it_cannot_play(page: str, name: str) -> None:
    make_agent = new_agent(page, name)
    for task, kwargs, kind in (
        ("WGPBandit-Abrupt-v0", {"continuous": True}, "a box"),
        ("WGPBandit-LinearContextual-v0", {}, "arms that are drawn anew at each step"),
    ):
        env = gymnasium.make(task, **kwargs)
        with pytest.raises(ValueError, match=f"^{name} plays a fixed number of arms.*has {kind}"):
            make_agent(env)


def test_every_agent_and_environment_has_its_page() -> None:
    agents = (ROOT / "docs" / "agents.md").read_text("utf-8")
    environments = (ROOT / "docs" / "environments.md").read_text("utf-8")
    assert not [name for name in names() if f"`{name}`" not in agents]
    assert not [one.id for one in ENVIRONMENTS if f"`{one.id}`" not in environments]


def test_the_results_in_the_pages_are_of_the_shipped_figure() -> None:
    made = declare(read_declaration("figure1"))
    text = (ROOT / "docs" / "results.md").read_text("utf-8")
    block = text.partition("<!-- results -->")[2].partition("<!-- /results -->")[0]
    assert f"runs: {made.seeds} (" in block
    table = [line.split("|")[1:-1] for line in block.splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line] for line in table)
    assert head == ["agent", *(task.name for task in made.tasks)]
    shown = [row[0] for row in rows if len(row) == len(head)]
    assert shown[: len(made.agents)] == [agent.label for agent in made.agents]


def test_nothing_is_left_to_fill_in_and_every_linked_file_exists() -> None:
    for name in written():
        text = (ROOT / name).read_text("utf-8")
        assert not re.findall(r"\b[A-Z]+_(?:TABLE|CPU)\b", text)
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text)
        assert not [link for link in links if not ((ROOT / name).parent / link).exists()], name


def test_lists_and_tables_are_read_alike_on_github_and_in_the_site() -> None:
    for name in written():
        fenced, before, in_list = False, "", False
        for line in (ROOT / name).read_text("utf-8").splitlines():
            starts = re.match(r"([-*]|\d+\.) ", line) is not None
            if not fenced and before.strip():
                assert not starts or in_list, f"{name}: no empty line before {line!r}"
                opens_table = line.startswith("|") and not before.startswith("|")
                assert not opens_table, f"{name}: no empty line before {line!r}"
            fenced ^= line.lstrip().startswith("```")
            in_list = starts or (in_list and (not line or line.startswith(" ")))
            before = line


def test_the_gallery_is_of_the_ids_that_there_are() -> None:
    again = "Run: python -m scripts.pages.gallery"
    assert gallery.PAGE.read_text("utf-8") == gallery.page(), again
    pictures = sorted(gallery.PICTURES.glob("*.png"))
    assert [one.stem for one in pictures] == sorted(one.id for one in ENVIRONMENTS), again
    assert sum(one.stat().st_size for one in pictures) < 2_000_000


def test_the_gallery_tells_an_ids_own_keywords() -> None:
    (parking,) = (one for one in ENVIRONMENTS if one.id == "WGPBandit-Parking-v0")
    told = gallery.section(parking)
    assert "`lengthscale=0.2`" in told
    assert "`horizon`" in told  # handed on by the task's function
    assert "`table=" not in told  # what makes it this id
    assert "T = 1307, 16 arms" in told


@pytest.mark.parametrize("script", NOTEBOOKS, ids=[one.stem for one in NOTEBOOKS])
def test_a_notebooks_page_has_its_cells(script: Path) -> None:
    page = script.with_suffix(".md").read_text("utf-8")
    for cell in notebooks.cells(script):
        ast.parse("" if cell.is_text else cell.source)
        assert cell.source in page, "Run: python -m scripts.pages.notebooks"
        for picture in re.findall(r'savefig\("([^"]+)"', cell.source):
            assert (script.parent / picture).exists()


@pytest.mark.slow
@pytest.mark.parametrize("script", NOTEBOOKS, ids=[one.stem for one in NOTEBOOKS])
def test_a_notebook_prints_what_its_page_says(script: Path, tmp_path: Path) -> None:
    assert notebooks.page(script, tmp_path) == script.with_suffix(".md").read_text("utf-8")
    assert list(tmp_path.glob("*.png"))


def test_every_agent_is_in_the_api_once() -> None:
    from wgp_agents.registry import AGENTS, HOME, agent_class

    asked = re.findall(r"^::: (\S+)", "".join(text for _, text in api.pages()), re.MULTILINE)
    assert len(asked) == len(set(asked))
    shipped = (name for name, one in AGENTS.items() if one.entry_point.startswith(f"{HOME}."))
    for made in map(agent_class, shipped):
        assert f"{made.__module__}.{made.__qualname__}" in asked
