"""A browser for the tests of the report's page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from wgp_agents.benchmark.report.page import assemble

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync
--force-prefers-reduced-motion --disable-dev-shm-usage"""
# Of each text, its contrast with what lies behind it; in a heat map that is the cell before it.
CONTRASTS = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const light = (c) => parse(c).slice(0, 3).map((v) => v / 255)
  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const behind = (node) => {
  const cell = node.previousElementSibling;
  if (cell && cell.matches('rect.cell')) return getComputedStyle(cell).fill;
  for (let up = node; up; up = up.parentElement) {
    const colour = getComputedStyle(up).backgroundColor;
    if ((parse(colour)[3] ?? 1) === 1) return colour;
  }
};
return [...document.querySelectorAll('body *:not(script):not(option)')].filter((node) =>
  node.getClientRects().length &&
  [...node.childNodes].some((t) => t.nodeType === 3 && t.data.trim())
).map((node) => {
  const style = getComputedStyle(node);
  const pair = [light(node.ownerSVGElement ? style.fill : style.color), light(behind(node))];
  return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), node.textContent];
});
"""


class Browser:
    """A page opened from disk, and short names for what the tests do with it."""

    def __init__(self, driver: Chrome, folder: Path) -> None:
        self.driver = driver
        self.folder = folder

    def open(self, report: dict[str, Any], hash_: str = "", width: int = 1280) -> None:
        path = self.folder / "report.html"
        path.write_text(assemble(report), encoding="utf-8")
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.driver.get("about:blank")
        self.driver.get(path.as_uri() + hash_)
        self.settle()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def settle(self) -> None:
        """Wait for two frames: what comes into view is drawn in between."""
        self.driver.execute_async_script(
            "const done = arguments[0]; let n = 0;"
            "const frame = () => (n++ < 4 ? requestAnimationFrame(frame) : done()); frame();"
        )

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((n) => n.textContent)"
        return list(self.run(script, selector))

    def count(self, selector: str) -> int:
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def show(self, selector: str) -> WebElement:
        node = self.one(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", node)
        self.settle()
        return node

    def problems(self) -> list[Any]:
        return list(self.driver.get_log("browser"))  # type: ignore[no-untyped-call]


@contextmanager
def chromium() -> Iterator[Chrome]:
    """A browser with an empty profile; it is given its driver, so nothing is downloaded."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*FLAGS.split(), f"--user-data-dir={profile}", "--window-size=1280,900"]:
            options.add_argument(flag)
        driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()
