"""The report's page in a real browser: one browser, and one page that most tests share."""

from __future__ import annotations

import base64
import re
import shutil
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up_summary import made_up

from wgp_agents.benchmark.report.page import page

pytest.importorskip("selenium")
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

from page_browser import CONTRASTS, Browser, chromium
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow

MADE = made_up()
FIRST = [0, 1, 2, 3, 4, 5, 6]  # the agents that show at first: the best six, and a reference
HOSTILE = (
    "</script><script>alert(1)</script>",
    '<img src="x" onerror="alert(1)">',
    "<b>bold</b><br>",
    '<a href="javascript:alert(1)">a</a>',
    "&lt;i&gt; &amp; %{y} {{ 7 * 7 }}",
    "__proto__",
    "constructor",
    "'\"`$x^2$",
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    with chromium() as driver:
        yield Browser(driver)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("page") / "report.html"
    found.write_text(page(MADE), encoding="utf-8")
    return found


@pytest.fixture
def browser(shared: Browser, path: Path) -> Iterator[Browser]:
    """The page as it is at first; whatever is done with it, nothing may be wrong."""
    shared.reopen(path)
    yield shared
    assert shared.problems() == []


def plot(browser: Browser, number: int) -> str:
    """Let a chart be drawn; return where it is."""
    where = f"figure[data-chart='{number}']"
    browser.show(where)
    return f"{where} .plot"


def drawn(browser: Browser, where: str) -> list[str]:
    """Return the names of the curves or boxes in a chart, as their data have them."""
    script = "return document.querySelector(arguments[0]).data.map((trace) => trace.name)"
    return [name for name in browser.run(script, where) if name is not None]


def bands(browser: Browser, where: str) -> int:
    """Return how many bands a chart has."""
    script = "return document.querySelector(arguments[0]).data.filter((one) => one.fill).length"
    return int(browser.run(script, where))


def labels(numbers: list[int]) -> set[str]:
    return {MADE.labels[k] for k in numbers}


def test_it_opens_from_disk_quietly_and_alone(browser: Browser) -> None:
    assert browser.run("return performance.getEntriesByType('resource').map((e) => e.name)") == []
    assert browser.count("figure[data-drawn]") >= 1
    assert browser.one("main").location["x"] > browser.one("#legend").size["width"]  # beside it
    where = plot(browser, 0)
    assert set(drawn(browser, where)) == labels(FIRST)
    assert bands(browser, where) == len(FIRST)
    assert browser.count(f"{where} .scatterlayer .js-line") == 2 * len(FIRST)  # with their bands
    request = "return fetch('https://example.org').then(() => 'sent', () => 'refused')"
    assert browser.run(request) == "refused"
    assert "connect" in str(browser.problems())  # the policy's own complaint


@pytest.mark.parametrize("key", [None, Keys.ENTER, Keys.SPACE])
def test_each_column_sorts(browser: Browser, key: str | None) -> None:
    browser.one("[data-pick=all]").click()
    table = "#tables figure:first-of-type"
    rows = [MADE.rows["task 0", label] for label in MADE.labels]
    columns = [MADE.labels, [row.mean.value for row in rows], [row.median.value for row in rows]]
    for column, values in enumerate(columns, 1):
        button = browser.show(f"{table} th:nth-child({column}) button")
        known = sorted(range(len(rows)), key=lambda k, of=values: of[k])  # type: ignore[misc]
        for way, order in (("ascending", known), ("descending", known[::-1])):
            if key is None:
                button.click()
            else:
                button.send_keys(key)
            script = (
                "return [...document.querySelectorAll(arguments[0])].map((r) => r.dataset.agent)"
            )
            assert list(map(int, browser.run(script, f"{table} tbody tr"))) == order
            assert browser.count(f"{table} th[aria-sort]") == 1
            assert browser.one(f"{table} th[aria-sort]").get_attribute("ariaSort") == way


def test_an_agent_switched_off_leaves_all_charts_and_tables(browser: Browser) -> None:
    places = [plot(browser, k) for k in (0, 1, 2, 3)]
    browser.one("#legend li:nth-child(2) input").click()
    for where in places:
        browser.show(where)
        assert set(drawn(browser, where)) - {"true optimum"} == labels(FIRST) - {"agent 1"}
    assert "true optimum" in drawn(browser, places[3])
    rows = "#tables figure:not([hidden]) tr:not([hidden])"
    assert browser.count(f"{rows}[data-agent='0']") > 2
    assert browser.count(f"{rows}[data-agent='1']") == 0
    across = browser.run(
        "return document.querySelector(arguments[0]).data[0].y", plot(browser, improvement_map())
    )
    assert [text.split("  ")[1] for text in across] == [
        MADE.labels[k] for k in FIRST if k not in (1, 5)
    ]


def improvement_map() -> int:
    """Return the number of the chart of all pairs, behind four of each task and the profiles."""
    return 4 * len(MADE.tasks) + 1


def test_all_none_and_best(browser: Browser) -> None:
    where = plot(browser, 0)
    for pick, expected in (("all", list(range(12))), ("none", []), ("best", FIRST)):
        browser.one(f"[data-pick={pick}]").click()
        browser.settle()
        assert set(drawn(browser, where)) == labels(expected)
        assert browser.count("#tables figure:first-of-type tbody tr:not([hidden])") == len(expected)
        assert bands(browser, where) == (len(expected) if pick != "all" else 0)


def test_the_task_is_chosen_for_all_charts_and_tables(browser: Browser) -> None:
    browser.one("#task").send_keys("task 1")
    browser.settle()
    shown = browser.texts("figure:not([hidden]) h3 small")
    assert len(shown) == 4 + 2 + 2  # charts, charts of parameters, tables
    assert set(shown) == {"task 1"}
    where = plot(browser, 4)
    script = "return document.querySelector(arguments[0]).data.at(-1).y.at(-1)"
    expected = MADE.played["task 1", "agent 6"].cumulative.mean[-1]
    assert browser.run(script, where) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["light", "dark"])
def test_every_text_has_contrast_on_either_paper(browser: Browser, path: Path, paper: str) -> None:
    browser.open(path)
    for way in ("system", "button"):
        browser.paper(paper if way == "system" else {"light": "dark", "dark": "light"}[paper])
        browser.settle()
        if way == "button":
            browser.one("#theme").click()
        for k in (0, 2, 3):
            plot(browser, k)
        found = browser.run(CONTRASTS)
        assert len(found) > 150
        assert [row for row in found if row[0] < 4.5] == []
        ground = browser.run("return getComputedStyle(document.documentElement).backgroundColor")
        assert ground == {"light": "rgb(253, 253, 252)", "dark": "rgb(20, 23, 26)"}[paper]
        lines = browser.run("return [...document.querySelectorAll('.js-line')].at(-1).style.stroke")
        swatch = "return getComputedStyle(document.querySelector('#legend .a6')).color"
        assert lines == browser.run(swatch)  # of those shown, agent 6 has the highest regret


def test_the_pointer_shows_every_value_at_a_step(browser: Browser) -> None:
    where = plot(browser, 0)
    ActionChains(browser.driver).move_to_element(browser.one(f"{where} .nsewdrag")).perform()
    browser.settle()
    head, *texts = browser.texts(f"{where} .hoverlayer text")
    task = MADE.tasks[0]
    at = [f"step {step}" for step in task.steps].index(head)
    curves = {MADE.labels[k]: MADE.played["task 0", MADE.labels[k]].cumulative for k in FIRST}
    order = sorted(curves, key=lambda label: float(curves[label].mean[-1]))
    for label, text in zip(order, texts, strict=True):
        told = re.fullmatch(r"(.*) : (\S+) \((\S+) to (\S+)\)", text)
        assert told is not None, text
        name, *shown = told.groups()
        assert name == label
        expected = [float(part[at]) for part in vars(curves[label]).values()]
        assert list(map(float, shown)) == pytest.approx(expected, rel=6e-4)


@pytest.mark.slow
def test_everything_is_reached_by_keyboard(browser: Browser, path: Path) -> None:
    browser.open(path)
    keys = ActionChains(browser.driver)
    keys.send_keys(Keys.TAB).perform()
    assert browser.run("return document.activeElement.className") == "skip"
    assert browser.one(".skip").is_displayed()
    reached = set()
    for _ in range(30):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        node = browser.driver.switch_to.active_element
        reached.add(node.get_attribute("id") or node.get_attribute("type") or node.tag_name)
        assert browser.run("return getComputedStyle(arguments[0]).outlineStyle", node) != "none"
    assert reached >= {"theme", "task", "checkbox", "button", "a"}
    browser.one("#legend input").send_keys(Keys.SPACE)
    assert "agent 0" not in drawn(browser, plot(browser, 0))
    native = "return [...document.querySelectorAll('body [role=button], body [tabindex]')]"
    found = browser.run(native + ".map((n) => n.tagName + n.className)")
    assert set(found) <= {"DIVscroll", "MAIN"}


def test_a_phone_scrolls_down_only_and_has_room_for_thumbs(browser: Browser, path: Path) -> None:
    browser.open(path, width=400)
    for k in (0, 2, 3, improvement_map()):
        plot(browser, k)
    assert browser.run("return document.documentElement.scrollWidth") == 400
    browser.one("#legend summary").click()
    small = browser.run(
        "return [...document.querySelectorAll('button, select, summary, #legend label, nav a')]"
        ".filter((n) => !n.closest('th')).map((n) => [n.getBoundingClientRect(), n.outerHTML])"
        ".filter(([r]) => r.width && r.height < 40).map((pair) => pair[1])"
    )
    assert small == []


LONG = (
    "WGP-UCB, B_T unknown, lambda default",
    "R-GP-UCB, B_T known, lambda default",
    "a label of many words " * 9,
    "x" * 200,
)


@pytest.mark.parametrize(
    "width", [400, *(pytest.param(one, marks=pytest.mark.slow) for one in (360, 1280))]
)
def test_long_labels_leave_room_for_the_charts(shared: Browser, tmp_path: Path, width: int) -> None:
    labels = iter(LONG)
    summary = made_up(
        agents=len(LONG), words=lambda one: next(labels) if one.startswith("agent ") else one
    )
    (tmp_path / "long.html").write_text(page(summary), encoding="utf-8")
    shared.open(tmp_path / "long.html", width)
    for k in (0, 2, 3):
        area = shared.one(f"{plot(shared, k)} .nsewdrag")
        assert area.size["width"] > 0.4 * min(width, 900)
    assert shared.run("return document.documentElement.scrollWidth") <= width
    assert shared.problems() == []


def test_hostile_labels_are_only_texts(shared: Browser, tmp_path: Path) -> None:
    texts = iter(HOSTILE)

    def _spoilt(text: str) -> str:
        return next(texts, text) if text.startswith("agent ") else text + HOSTILE[0]

    summary = made_up(agents=len(HOSTILE), words=_spoilt)
    assert summary.labels == list(HOSTILE)
    (tmp_path / "evil.html").write_text(page(summary), encoding="utf-8")
    shared.open(tmp_path / "evil.html")
    where = plot(shared, 0)
    ActionChains(shared.driver).move_to_element(shared.one(f"{where} .nsewdrag")).perform()
    shared.settle()
    told = shared.texts(f"{where} .hoverlayer text")
    for label in HOSTILE:
        assert any(text.startswith(f"{label} : ") for text in told), label
    where = plot(shared, 2)
    assert set(shared.texts(f"{where} .annotation-text")) == set(HOSTILE)
    assert shared.texts("h1") == ["Made up" + HOSTILE[0]]
    assert shared.count("script") == 3
    assert shared.count("img, .plot a, .plot tspan[style*=bold], .plot br, main a") == 0
    assert shared.problems() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_chart_is_saved_with_its_legend(browser: Browser, tmp_path: Path, kind: str) -> None:
    behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.command("Browser.setDownloadBehavior", **behaviour)
    plot(browser, 0)
    browser.show(f"[data-chart='0'] [data-save={kind}]").click()
    for _ in range(100):
        if found := list(tmp_path.glob(f"*.{kind}")):
            break
        time.sleep(0.1)
    content = found[0].read_bytes()
    if kind == "png":
        assert content.startswith(b"\x89PNG\r\n")
        return
    root = ElementTree.fromstring(content)
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {*labels(FIRST), "Cumulative regret task 0", "step t"}


@pytest.mark.slow
def test_the_print_is_light_and_whole(browser: Browser) -> None:
    browser.one("#legend summary").click()  # which closes it
    browser.paper("dark")
    browser.settle()
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.settle()
    assert browser.count("figure[data-drawn]") == browser.count(".chart:not([hidden])") == 9
    widths = browser.run(
        "return [...document.querySelectorAll('.main-svg')].map((n) => n.clientWidth)"
    )
    assert set(widths) == {680}
    assert browser.one("#legend li").is_displayed()
    script = "return getComputedStyle(document.querySelector('.main-svg')).backgroundColor"
    assert browser.run(script) == "rgb(253, 253, 252)"
    browser.run("dispatchEvent(new Event('afterprint'))")
    browser.settle()
    plot(browser, 0)
    assert browser.run(script) == "rgb(20, 23, 26)"
    printed = base64.b64decode(browser.command("Page.printToPDF")["data"])
    assert printed.count(b"/Type /Page\n") > 2


@pytest.mark.slow
def test_only_what_is_near_is_drawn(shared: Browser, tmp_path: Path) -> None:
    made = made_up(agents=50, tasks=4, points=50)
    (tmp_path / "large.html").write_text(page(made), encoding="utf-8")
    shared.open(tmp_path / "large.html")
    shared.one("[data-pick=all]").click()
    where = plot(shared, 0)
    assert 1 <= shared.count("figure[data-drawn]") <= 4
    assert len(drawn(shared, where)) == 50
    assert shared.problems() == []


def test_without_javascript_the_words_and_tables_are_there(shared: Browser, path: Path) -> None:
    off: Any = {"value": True}
    shared.command("Emulation.setScriptExecutionDisabled", **off)
    try:
        shared.driver.get(path.as_uri())
        shared.shown = None
        text = shared.one("body").text
        for piece in ("task 1", "agent 11", "(", "need JavaScript", "results/again", "2.3.1"):
            assert piece in text, piece
        assert not shared.one("#controls").is_displayed()
    finally:
        shared.command("Emulation.setScriptExecutionDisabled", value=False)
