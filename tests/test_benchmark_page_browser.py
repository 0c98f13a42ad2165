from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_benchmark_page import content

pytest.importorskip("selenium")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

from page_browser import Browser, chromium
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

DASH = "\N{EN DASH}"


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(driver: Chrome, tmp_path: Path) -> Browser:
    return Browser(driver, tmp_path)


LINES = "#chart-regret-0"
SVG = f"{LINES} svg.drawing"


def top_tick(browser: Browser) -> float:
    return max(float(text) for text in browser.texts(f"{SVG} .axis:nth-of-type(2) text:not(.name)"))


def test_it_opens_from_disk_quietly_and_alone(browser: Browser) -> None:
    browser.open(content())
    assert browser.problems() == []
    assert browser.run("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.count(f"{SVG} g.series") == 8
    assert browser.texts("figure.chart:not([hidden]) h3")[0] == "Cumulative regret, abrupt"


@pytest.mark.parametrize("key", [None, Keys.ENTER, Keys.SPACE])
@pytest.mark.parametrize("column", range(4))
def test_each_column_sorts(browser: Browser, column: int, key: str | None) -> None:
    report = content()
    browser.open(report)
    labels = [agent["label"] for agent in report["agents"]]
    cells = [row["cells"][column] for row in report["tables"][0]["rows"]]
    values = [labels[c] if column == 0 else c[0] if isinstance(c, list) else c for c in cells]
    known = sorted((v, k) for k, v in enumerate(values) if v is not None)
    missing = [k for k, v in enumerate(values) if v is None]
    button = browser.show(f"#table-final-0 th:nth-child({column + 1}) button")
    first, second = ("descending", "ascending") if column == 2 else ("ascending", "descending")
    for way in (first, second):
        if key:
            button.send_keys(key)
        else:
            button.click()
        order = known if way == "ascending" else known[::-1]
        rows = browser.run(
            "return [...document.querySelectorAll('#table-final-0 tbody tr')]"
            ".map((r) => Number(r.dataset.row))"
        )
        assert rows == [k for _, k in order] + missing
        sorts = browser.driver.find_elements(By.CSS_SELECTOR, "#table-final-0 th[aria-sort]")
        assert [th.get_attribute("aria-sort") for th in sorts] == [way]
    if column == 3:
        assert browser.texts("#table-final-0 tbody tr:last-child td")[-1] == DASH


def test_an_agent_switched_off_leaves_and_the_axis_follows(browser: Browser) -> None:
    browser.open(content())
    assert top_tick(browser) >= 1000
    browser.one("#agent-list input[data-agent='6']").click()
    assert browser.count(f"{SVG} g.series") == 7
    assert browser.count(f"{SVG} g.series[data-agent='6']") == 0
    assert top_tick(browser) < 1000
    assert "#off=6" in browser.driver.current_url
    assert browser.texts("#table-final-0 tbody tr[hidden] th") == ["Random"]


def test_only_all_and_none(browser: Browser) -> None:
    browser.open(content())
    browser.one("#agent-list li:nth-child(2) .only").click()
    assert browser.count(f"{SVG} g.series") == 1
    assert browser.count("#chart-map-0[hidden]") == 1
    browser.one("#none").click()
    assert browser.count(f"{SVG} g.series") == 0
    assert "switched off" in browser.texts(f"{LINES} .remark")[0]
    browser.one("#all").click()
    assert browser.count(f"{SVG} g.series") == 8
    assert "#" not in browser.driver.current_url


def test_the_tooltip_says_the_data_in_order(browser: Browser) -> None:
    report = content()
    browser.open(report)
    svg = browser.show(SVG)
    ActionChains(browser.driver).move_to_element_with_offset(svg, 40, 30).perform()
    step = int(browser.texts(f"{LINES} .tip p")[0].removeprefix("step = "))
    chart = report["charts"][0]
    at = chart["x"].index(step)
    wanted = sorted(
        (s["y"][at], s["low"][at], s["high"][at], report["agents"][s["agent"]]["label"])
        for s in chart["series"]
    )
    assert browser.texts(f"{LINES} .tip td:first-child") == [row[3] for row in wanted]
    digits = 1 if wanted[0][0] < 100 else 0
    assert browser.texts(f"{LINES} .tip .value") == [f"{row[0]:.{digits}f}" for row in wanted]
    ranges = [f"{row[1]:.{digits}f} to {row[2]:.{digits}f}" for row in wanted]
    assert browser.texts(f"{LINES} .tip .range") == ranges


def test_arrow_keys_read_the_values_and_escape_leaves(browser: Browser) -> None:
    report = content()
    browser.open(report)
    svg = browser.show(SVG)
    x = report["charts"][0]["x"]
    for key, at in [("RIGHT", 0), ("RIGHT", 1), ("RIGHT", 2), ("LEFT", 1), ("END", -1)]:
        svg.send_keys(getattr(Keys, key if key == "END" else f"ARROW_{key}"))
        assert browser.texts(f"{LINES} .tip p")[0] == f"step = {x[at]:.0f}"
        assert browser.texts("#live")[0].startswith(f"step = {x[at]:.0f}: Oracle")
        assert browser.count(f"{SVG} .cross") == 1
    svg.send_keys(Keys.ESCAPE)
    assert browser.count(f"{SVG} .cross") == 0
    assert browser.count(f"{LINES} .tip[hidden]") == 1


def test_boxes_and_maps_say_their_values(browser: Browser) -> None:
    report = content()
    browser.open(report)
    browser.show("#chart-boxes-0 svg.drawing").send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert browser.texts("#chart-boxes-0 .tip p") == ["SW-GP-UCB"]
    median = next(c for c in report["charts"] if c["id"] == "boxes-0")["boxes"][1]["quantiles"][3]
    assert browser.texts("#chart-boxes-0 .tip .hot .value") == [f"{median:.0f}"]
    browser.show("#chart-map-0 svg.drawing").send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert browser.texts("#chart-map-0 .tip p") == ["length scale = 0.2, discount = 0.9"]
    browser.one("#chart-map-0 svg.drawing").send_keys(Keys.END)
    assert browser.texts("#chart-map-0 .tip .value") == [DASH]
    values = [v for row in report["charts"][-2]["values"] for v in row if v is not None]
    best = browser.run("const r = document.querySelector('#chart-map-0 .best');"
                       "return [r.x.baseVal.value, r.y.baseVal.value]")  # fmt: skip
    places = browser.run("return [...document.querySelectorAll('#chart-map-0 .cell')]"
                         ".map((r) => [r.x.baseVal.value + 1, r.y.baseVal.value + 1])")  # fmt: skip
    assert places.index(best) == values.index(min(values))


def test_the_address_restores_a_view(browser: Browser) -> None:
    browser.open(content(), "#task=1&on=0.2&sort=1.1.down")
    assert browser.count("#chart-regret-1 g.series") == 2
    assert browser.count("#chart-regret-0[hidden]") == 1
    assert browser.one("#task").get_attribute("value") == "1"
    shown = browser.texts("#table-final-1 tbody tr:not([hidden]) th")
    assert shown == ["R-GP-UCB", "WGP-UCB"]
    browser.run("location.hash = '#task=2'")
    browser.settle()
    assert browser.count("#chart-regret-2 g.series") == 8
    browser.run("location.hash = '#task=77&off=99&on=x&sort=9.9.up&sort=x&%'")
    browser.settle()
    assert browser.problems() == []


def test_a_line_of_no_agent_always_shows_and_gaps_stay_gaps(browser: Browser) -> None:
    report = content()
    y: list[float | None] = [5.0, 6.0, None, 8.0, 9.0]
    x = [100, 200, 250, 300, 400]
    bounds = [{"agent": None, "label": name, "x": x, "y": y, "note": "scaled"} for name in "ab"]
    report["charts"][0]["series"] += bounds
    browser.open(report)
    browser.one("#none").click()
    lines = browser.driver.find_elements(By.CSS_SELECTOR, f"{SVG} g.series path.line")
    assert [(line.get_attribute("d") or "").count("M") for line in lines] == [2, 2]
    assert len({line.get_attribute("stroke-dasharray") for line in lines}) == 2
    assert browser.texts(f"{LINES} .remark") == ["a: scaled. b: scaled."]
    browser.show(SVG).send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 2)
    assert browser.texts(f"{LINES} .tip td") == []
    browser.one(SVG).send_keys(Keys.ARROW_RIGHT)
    assert browser.texts(f"{LINES} .tip .value") == ["8.00", "8.00"]


def test_the_theme_is_kept_and_the_links_leave_the_view_alone(browser: Browser) -> None:
    browser.open(content(), "#off=1")
    browser.one("#theme [data-theme=dark]").click()
    browser.driver.refresh()
    pressed = browser.one("#theme [aria-pressed=true]")
    assert pressed.text == "dark"
    browser.one("#theme [data-theme=auto]").click()
    browser.one("#contents a[href='#reproduce']").click()
    assert browser.driver.current_url.endswith("#off=1")
    assert browser.run("return document.activeElement.id") == "reproduce"
    browser.one("button[data-copy='#command']").click()
    browser.settle()
    assert browser.texts("#live") == ["copied"]
