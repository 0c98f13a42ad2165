/* Theme, links within the page, copying, resizing, printing; then the start. */
(function (R) {
  "use strict";
  const root = document.documentElement;
  const narrow = window.matchMedia("(max-width: 899px)");

  /* The store is missing in some private windows and sandboxes; the page does without. */
  function remembered() {
    try { return localStorage.getItem("wgp-report-theme"); } catch (error) { return null; }
  }
  function remember(theme) {
    try { localStorage.setItem("wgp-report-theme", theme); } catch (error) { /* not kept */ }
  }

  function setTheme(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
    for (const button of R.all("#theme button")) {
      button.setAttribute("aria-pressed", String(button.dataset.theme === (theme || "auto")));
    }
  }

  function theme() {
    for (const button of R.all("#theme button")) {
      button.addEventListener("click", () => {
        setTheme(button.dataset.theme);
        remember(button.dataset.theme);
      });
    }
    setTheme(remembered() || "auto");
  }

  /* Links within the page scroll, so that the address keeps the view. */
  function links() {
    for (const link of R.all("#contents a")) {
      if (!R.one(link.getAttribute("href"))) link.parentNode.remove();
      link.addEventListener("click", (event) => {
        const target = R.one(link.getAttribute("href"));
        if (!target) return;
        event.preventDefault();
        R.drawAll();
        target.scrollIntoView();
        target.setAttribute("tabindex", "-1");
        target.focus({ preventScroll: true });
      });
    }
    const asked = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (asked) {
      R.drawAll();
      asked.scrollIntoView();
    }
  }

  function copyOld(text) {
    const area = R.html("textarea", { class: "offstage" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }

  function copying() {
    for (const button of R.all("button[data-copy]")) {
      const name = button.textContent;
      button.addEventListener("click", async () => {
        const text = R.one(button.dataset.copy).textContent;
        let done = true;
        try { await navigator.clipboard.writeText(text); } catch (error) { done = copyOld(text); }
        button.textContent = done ? "copied" : "select and copy by hand";
        R.one("#live").textContent = button.textContent;
        setTimeout(() => { button.textContent = name; }, 2000);
      });
    }
  }

  function resizing() {
    let width = window.innerWidth;
    let waiting = 0;
    window.addEventListener("resize", () => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(R.redraw);
    });
  }

  function printing() {
    let opened = [];
    window.addEventListener("beforeprint", () => {
      opened = R.all("main details:not([open])");
      opened.forEach((d) => { d.open = true; });
      R.figures.filter((f) => !f.node.hidden).forEach(R.draw);
    });
    window.addEventListener("afterprint", () => {
      opened.forEach((d) => { d.open = false; });
      R.redraw();
    });
  }

  function panel() {
    const details = R.one("#agents");
    const settle = () => { details.open = !narrow.matches; };
    narrow.addEventListener("change", settle);
    settle();
    details.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !narrow.matches) return;
      details.open = false;
      R.one("summary", details).focus();
    });
    document.addEventListener("pointerdown", (event) => {
      if (narrow.matches && !details.contains(event.target)) details.open = false;
    });
  }

  R.settle = () => {
    theme();
    links();
    copying();
    resizing();
    printing();
    panel();
  };
  R.start();
})(window.wgpReport);
