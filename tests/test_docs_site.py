"""The site: links out of docs/, equations, and pages that ask no other server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown import markdown

from scripts.pages.equations import Equations
from scripts.pages.links import rewritten

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"""<(?:script|img|source|iframe)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'>]+""")
STYLES = re.compile(r"""<link\b[^>]*\bhref=["']?(?:https?:)?//[^"'>]+""")


def test_links_of_the_repository_become_links_of_the_site() -> None:
    given = "[a](docs/live.md#time) [b](agents/README.md) ![c](docs/figure1.png) [d](CHANGELOG.md)"
    made = "[a](live.md#time) [b](extending.md) ![c](figure1.png) [d](changelog.md)"
    assert rewritten(given, "index.md") == made
    assert rewritten("[a](../../README.md#more)", "start/rl.md") == "[a](../index.md#more)"
    assert rewritten("[a](../docs/rl.md)", "extending.md") == "[a](rl.md)"
    assert (
        rewritten("[a](#here) [b](https://x.org/a.md)", "rl.md")
        == "[a](#here) [b](https://x.org/a.md)"
    )


def test_a_link_to_what_is_not_in_the_site_becomes_a_path() -> None:
    path = "agents/wgp_agents/training/general.toml"
    assert rewritten(f"[general.toml](../{path})", "learned.md") == f"`{path}`"
    assert rewritten("[the table](../wgp_gym/registration.py)", "rl.md") == (
        "the table (`wgp_gym/registration.py`)"
    )


def test_code_keeps_what_looks_like_a_link() -> None:
    code = "```python\nx = f[0](docs/live.md)\n```"
    assert rewritten(code, "index.md") == code


def test_an_equation_becomes_mathml_and_code_stays_code() -> None:
    made = markdown(r"Here $`\eta^{t-s}`$ and `\eta` for $5.", extensions=[Equations()])
    assert made.count("<math") == 1
    assert "<msup>" in made
    assert r"<code>\eta</code> for $5." in made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = {page: page.read_text("utf-8") for page in site.rglob("*.html")}
    assert len(pages) > 30
    for page, text in pages.items():
        found = [*LOADED.findall(text), *STYLES.findall(text)]
        assert not [one for one in found if "rel=canonical" not in one], page.name
        assert "unpkg.com" not in text
        assert "```" not in re.sub(r"(?s)<(code|pre)\b.*?</\1>", "", text), page.name
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?(?:https?:)?//", style.read_text("utf-8"))


@pytest.mark.slow
def test_the_pages_have_equations_docstrings_and_an_index_to_search(site: Path) -> None:
    agents = (site / "agents.html").read_text("utf-8")
    assert agents.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"') > 10
    assert "\\frac" not in agents
    kernelized = (site / "api" / "kernelized.html").read_text("utf-8")
    assert "Weighted Gaussian Process UCB" in kernelized
    index = (site / "search" / "search_index.js").read_text("utf-8")
    assert index.startswith("var __index = ")
    assert "WGPBandit-Parking-v0" in index
