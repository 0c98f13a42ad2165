"""The page of a live bandit in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_up_facts import offers, prices

pytest.importorskip("selenium")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

from page_browser import CONTRASTS, Browser, chromium

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>alert(1)</script><b>bold</b><img src=x onerror=alert(1)> %{y} $x^2$"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as driver:
        yield Browser(driver)


def draw(browser: Browser, path: Path, width: int = 1280, paper: str = "light") -> int:
    """Open a page and let all its charts be drawn; return how many there are."""
    browser.open(path, width, paper)
    count = browser.count(".chart")
    for k in range(count):
        browser.show(f".chart[data-chart='{k}']")
    return count


def test_it_draws_quietly_and_alone_on_both_papers(browser: Browser, tmp_path: Path) -> None:
    prices().to_html(tmp_path / "page.html")
    for paper, width in (("light", 1280), ("dark", 1280), ("light", 400)):
        assert draw(browser, tmp_path / "page.html", width, paper) == 3
        assert browser.count(".chart[data-drawn] .plot .main-svg") >= 3
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width
        low = [one for one in browser.run(CONTRASTS) if one[0] < 4.4]
        assert low == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.problems() == []


def test_hostile_names_are_shown_as_they_are(browser: Browser, tmp_path: Path) -> None:
    made = offers(words=lambda name: name + HOSTILE)
    made.to_html(tmp_path / "page.html")
    assert draw(browser, tmp_path / "page.html") == 2
    assert browser.texts("h1") == [f"offers{HOSTILE}"]
    assert browser.count("main b, main img") == 0
    names = browser.texts(".chart[data-chart='1'] .ytick text")
    assert sorted(name.replace("\xa0", " ") for name in names) == sorted(a.label for a in made.arms)
    assert browser.problems() == []


def test_the_table_is_sorted(browser: Browser, tmp_path: Path) -> None:
    offers().to_html(tmp_path / "page.html")
    draw(browser, tmp_path / "page.html")
    browser.one(".sortable th:nth-child(2) button").click()
    assert browser.texts(".sortable tbody td:first-child")[0] == "Coupon"  # the lowest mean
