from __future__ import annotations

import csv
import io
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_benchmark_page import EVIL, content

from wgp_agents.benchmark.report.page import assemble

pytest.importorskip("selenium")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

from page_browser import CONTRASTS, Browser, chromium
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

LINES = "#chart-regret-0"
SVG = f"{LINES} svg.drawing"


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(driver: Chrome, tmp_path: Path) -> Browser:
    return Browser(driver, tmp_path)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_contrast(browser: Browser, theme: str) -> None:
    browser.open(content())
    browser.one(f"#theme [data-theme={theme}]").click()
    for kind in ("lines", "boxes", "heatmap"):
        browser.show(f"figure.{kind}:not([hidden])")
    found = browser.run(CONTRASTS)
    assert len(found) > 200
    assert [row for row in found if row[0] < 4.5] == []
    paper = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
    assert paper == {"light": "rgb(253, 253, 252)", "dark": "rgb(20, 23, 26)"}[theme]
    browser.one("#theme [data-theme=auto]").click()


def test_a_phone_scrolls_down_only_and_has_room_for_thumbs(browser: Browser) -> None:
    browser.open(content(agents=20), width=360)
    for chart in ("regret-0", "boxes-0", "map-0"):
        browser.show(f"#chart-{chart}")
    assert browser.run("return document.documentElement.scrollWidth") == 360
    browser.one("#agents summary").click()
    small = browser.run(
        "return [...document.querySelectorAll('button, select, summary, input, label')]"
        ".map((n) => [n, n.closest('label') || n])"
        ".map(([n, area]) => [area.getBoundingClientRect(), n.outerHTML])"
        ".filter(([r]) => r.width && (r.height < 40 || r.width < 40)).map((pair) => pair[1])"
    )
    assert small == []
    browser.one("#filter").send_keys("random")
    assert browser.count("#agent-list li:not([hidden])") == 2


def test_hostile_texts_are_only_texts(browser: Browser) -> None:
    report = content(tasks=1)
    for item in [*report["agents"], *report["tasks"], *report["charts"], report["tables"][0]]:
        item |= {
            key: EVIL for key in ("label", "name", "title", "caption", "x_label") if key in item
        }
    report |= {"title": EVIL, "findings": [EVIL]}
    browser.run("window.alert = () => { throw new Error('alert'); }")
    browser.open(report)
    browser.show(SVG).send_keys(Keys.ARROW_RIGHT)
    assert browser.problems() == []
    assert browser.count("script") == 2
    assert EVIL.replace("\u2028", "") in browser.texts(f"{LINES} .tip td")[0].replace("\u2028", "")


def test_saved_charts_stand_alone(browser: Browser) -> None:
    report = content()
    browser.open(report)
    for kind in ("lines", "boxes", "heatmap"):
        script = f"const R = wgpReport, c = R.content.charts.find((c) => c.kind === '{kind}');"
        svg = browser.run(script + "return R.standalone(c)")
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert "class=" not in svg
        assert "var(" not in svg
        assert "currentcolor" not in svg.lower()
        assert "light-dark" not in svg
        assert {"lines": "rgb(0, 114, 178)", "boxes": "rgb(0, 158, 115)"}.get(kind, "rgb") in svg
    rows = list(
        csv.DictReader(
            io.StringIO(browser.run("return wgpReport.csv(wgpReport.content.charts[0])"))
        )
    )
    chart = report["charts"][0]
    assert [float(row["y"]) for row in rows] == [y for s in chart["series"] for y in s["y"]]
    assert rows[-1]["label"] == "PPO (stable-baselines3)"


def test_only_what_is_near_is_drawn(browser: Browser) -> None:
    browser.open(content(agents=50, tasks=10))
    assert 1 <= browser.count("figure[data-drawn]") <= 3
    assert browser.count("figure.chart") == 32
    assert browser.count(f"{SVG} g.series") == 50
    assert browser.count(f"{SVG} .band") == 0
    assert "Bands are not drawn" in browser.texts(f"{LINES} .remark")[0]
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.count("figure[data-drawn]") == browser.count("figure.chart:not([hidden])") == 5


def test_without_javascript_the_words_and_tables_are_there(browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        path = browser.folder / "plain.html"
        path.write_text(assemble(content()), encoding="utf-8")
        browser.driver.get(path.as_uri())
        text = browser.one("body").text
        for piece in ("WGP-UCB has the lowest", "242 (233 to 251)", "need JavaScript", "numpy"):
            assert piece in text
        assert not browser.one("#controls").is_displayed()
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
