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

FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync
--force-prefers-reduced-motion --disable-dev-shm-usage"""
RESET = """
delete document.documentElement.dataset.theme;
document.querySelector('#legend').open = true;
document.querySelector('#task').value = '0';
document.querySelector('[data-pick=best]').click();
scrollTo(0, 0);
"""
# Of each text, its contrast with what lies behind it. Plotly's own choice of black or white in a
# map's cells is left to it, and a chart out of view is drawn anew when it comes into view.
CONTRASTS = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const light = (c) => parse(c).slice(0, 3).map((v) => v / 255)
  .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const behind = (node) => {
  for (let up = node; up; up = up.parentElement) {
    const colour = getComputedStyle(up).backgroundColor;
    if ((parse(colour)[3] ?? 1) === 1) return colour;
  }
};
return [...document.querySelectorAll('body *:not(script):not(option)')].filter((node) =>
  node.getClientRects().length &&
  !node.closest('.heatmap-label, .chart:not([data-drawn]) .plot') &&
  [...node.childNodes].some((t) => t.nodeType === 3 && t.data.trim())
).map((node) => {
  const style = getComputedStyle(node);
  const pair = [light(node.ownerSVGElement ? style.fill : style.color), light(behind(node))];
  return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), node.textContent];
});
"""


class Browser:
    """A page opened from disk, and short names for what the tests do with it."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self.shown: tuple[Path, int] | None = None

    def open(self, page: Path, width: int = 1280, paper: str = "light") -> None:
        """Open a page as if for the first time, in a window of a width, on light or dark paper."""
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.paper(paper)
        self.driver.get("about:blank")
        self.driver.get(page.as_uri())
        self.shown = (page, width)
        self.settle()

    def reopen(self, page: Path) -> None:
        """Open a page in a wide window; where it is open already, put everything back."""
        if self.shown != (page, 1280):
            self.open(page)
            return
        self.paper("light")
        self.run(RESET)
        self.settle()

    def paper(self, name: str) -> None:
        """Let the system be "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.command("Emulation.setEmulatedMedia", features=[feature])

    def command(self, name: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, values)

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
