/* The figure around a chart: drawn when it comes into view, read by pointer or keyboard,
   saved as SVG or CSV. */
(function (R) {
  "use strict";
  const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
  const LISTED = 10;
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity",
    "stroke-dasharray", "stroke-linejoin", "stroke-linecap", "opacity", "font-family",
    "font-size", "font-style", "font-weight", "text-anchor"];
  R.figures = [];

  R.save = (name, type, text) => {
    const url = URL.createObjectURL(new Blob([text], { type }));
    const link = R.html("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  /* A chart for a paper: fixed width, light, every style written into the elements. */
  R.standalone = (chart) => {
    const root = document.documentElement;
    const theme = root.dataset.theme;
    const width = 820;
    const svg = R.svg("svg", { class: "drawing", width });
    const host = R.html("div", { class: "offstage" }, svg);
    document.body.append(host);
    root.dataset.theme = "light";
    const model = R.kinds[chart.kind](chart, svg, width, true);
    // All styles are read before the first class goes: children inherit from their parents.
    const read = R.all("*", svg).map((node) => {
      const style = getComputedStyle(node);
      const text = node.tagName === "text";
      return [node, STYLES.filter((p) => text || !/^(font|text)/.test(p))
        .map((p) => [p, style.getPropertyValue(p)])];
    });
    for (const [node, kept] of read) {
      node.removeAttribute("style");
      node.removeAttribute("class");
      for (const [p, value] of kept) if (value) node.setAttribute(p, value);
    }
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    host.remove();
    svg.removeAttribute("class");
    svg.setAttribute("height", model.height);
    const page = { x: -12, y: -12, width: width + 24, height: model.height + 24 };
    svg.setAttribute("viewBox", Object.values(page).join(" "));
    svg.prepend(R.svg("title", {}, chart.title), R.svg("rect", { ...page, fill: "#ffffff" }));
    return new XMLSerializer().serializeToString(svg);
  };

  R.csv = (chart) => {
    const quote = (v) => (v === null || v === undefined ? ""
      : /[",\r\n]/.test(v) ? `"${String(v).replace(/"/g, '""')}"` : String(v));
    const table = [];
    if (chart.kind === "lines") {
      table.push(["label", "x", "y", "low", "high"]);
      for (const s of chart.series) {
        const x = s.x || chart.x || [];
        s.y.forEach((y, k) => table.push([R.label(s), x.length ? x[k] : k + 1, y,
          s.low && s.low[k], s.high && s.high[k]]));
      }
    } else if (chart.kind === "boxes") {
      table.push(["label", "min", "q05", "q25", "median", "q75", "q95", "max", "mean"]);
      for (const b of chart.boxes) table.push([R.label(b), ...b.quantiles, b.mean]);
    } else {
      table.push([chart.x_label || "x", chart.y_label || "y", chart.unit || "value"]);
      chart.values.forEach((row, j) => row.forEach((v, i) =>
        table.push([chart.x[i], chart.y[j], v])));
    }
    return table.map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
  };

  /* ---- the values under the crosshair ---- */
  function listed(rows) {
    if (rows.length <= LISTED) return [rows, ""];
    const hot = Math.max(0, rows.findIndex((r) => r.hot));
    const from = Math.min(rows.length - LISTED, Math.max(0, hot - LISTED / 2));
    const part = rows.slice(from, from + LISTED);
    return [part, `places ${from + 1} to ${from + LISTED} of ${rows.length}`];
  }

  function fillTip(figure, said) {
    const decimals = said.decimals ?? R.decimals(said.rows.map((r) => r.value));
    const [part, more] = listed(said.rows);
    const swatch = (r) => ("agent" in r ? R.swatch(r.agent, r.dash) : "");
    const body = part.map((r) => R.html("tr", { class: r.hot ? "hot" : null },
      R.html("td", {}, swatch(r), R.html("span", {}, r.label)),
      R.html("td", { class: "value" }, R.format(r.value, decimals)),
      R.html("td", { class: "range" }, R.interval(r.low, r.high, decimals))));
    figure.tip.replaceChildren(
      R.html("p", {}, "agent" in said ? R.swatch(said.agent) : "", said.title),
      R.html("table", {}, R.html("tbody", {}, body)),
      more ? R.html("p", { class: "more" }, more) : "");
    const spoken = part.map((r) => {
      const range = R.interval(r.low, r.high, decimals);
      return `${r.label} ${R.format(r.value, decimals)}${range ? `, ${range}` : ""}`;
    });
    return `${said.title}: ${spoken.join("; ")}${more ? `; ${more}` : ""}`;
  }

  /* Beside the point, on the side with room; if neither has any, under it. */
  function place(figure, { at: [px, py], gap, under }) {
    const { tip, plot } = figure;
    tip.hidden = false;
    const room = plot.clientWidth;
    const width = tip.offsetWidth;
    let left = px + gap;
    if (left + width > room) left = px - gap - width;
    const cramped = left < 0;
    if (cramped) left = Math.max(0, Math.min(px - width / 2, room - width));
    tip.style.left = `${left}px`;
    tip.style.top = `${cramped ? under : py}px`;
  }

  function show(figure, cursor, aloud) {
    const model = figure.model;
    if (!model || model.empty || !cursor) return;
    figure.cursor = cursor;
    figure.overlay.replaceChildren();
    model.paint(figure.overlay, cursor);
    const said = model.describe(cursor);
    const text = fillTip(figure, said);
    place(figure, said);
    if (aloud) R.one("#live").textContent = text;
    const hot = cursor.near?.agent ?? undefined;
    R.highlight(hot, figure.svg);
  }

  function leave(figure) {
    if (!figure.cursor) return;
    figure.cursor = null;
    figure.tip.hidden = true;
    figure.overlay.replaceChildren();
    R.highlight(undefined, figure.svg);
  }

  R.highlight = (agent, root) => {
    for (const g of R.all("g.series", root)) {
      g.classList.toggle("pale", agent !== undefined && g.dataset.agent !== String(agent));
      g.classList.toggle("strong", agent !== undefined && g.dataset.agent === String(agent));
    }
  };

  function listen(figure) {
    const { svg } = figure;
    const point = (event) => {
      const area = svg.getBoundingClientRect();
      show(figure, figure.model && !figure.model.empty &&
        figure.model.pick(event.clientX - area.left, event.clientY - area.top), false);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") leave(figure); });
    svg.addEventListener("blur", () => leave(figure));
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") leave(figure);
      if (!KEYS.includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (!figure.model || figure.model.empty) return;
      show(figure, figure.model.step(figure.cursor, event.key), true);
    });
  }

  /* ---- drawing ---- */
  R.draw = (figure) => {
    const { chart, svg, plot } = figure;
    const width = plot.clientWidth;
    if (!width) return;
    leave(figure);
    svg.replaceChildren();
    figure.model = R.kinds[chart.kind](chart, svg, width, false);
    figure.overlay = R.svg("g", { class: "overlay" });
    svg.append(figure.overlay);
    svg.setAttribute("width", width);
    svg.setAttribute("height", figure.model.height);
    svg.setAttribute("viewBox", `0 0 ${width} ${figure.model.height}`);
    figure.remark.textContent = figure.model.remark;
    figure.node.dataset.drawn = width;
    plot.style.minHeight = "";
    figure.stale = false;
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = R.figures[entry.target.dataset.index];
      figure.near = entry.isIntersecting;
      if (figure.near && figure.stale) R.draw(figure);
    }
  }, { rootMargin: "150px" });

  /* Charts that are not drawn yet have no height of their own: a jump past them would miss. */
  R.drawAll = () => {
    for (const figure of R.figures) if (figure.stale && !figure.node.hidden) R.draw(figure);
  };

  R.redraw = () => {
    for (const figure of R.figures) {
      figure.stale = true;
      if (figure.near && !figure.node.hidden) R.draw(figure);
    }
  };

  const HELP = {
    lines: "Line chart; the left and right arrow keys read the values.",
    boxes: "Box chart; the up and down arrow keys read the values.",
    heatmap: "Heat map; the arrow keys read the values.",
  };

  R.makeFigure = (chart, index) => {
    const figure = { chart, stale: true, near: false, cursor: null };
    const name = chart.id.replace(/[^\w.-]+/g, "-");
    figure.svg = R.svg("svg", { class: "drawing", role: "img", tabindex: 0,
      "aria-label": `${chart.title}. ${chart.caption || ""} ${HELP[chart.kind]}` });
    figure.tip = R.html("div", { class: "tip", hidden: true });
    figure.plot = R.html("div", { class: "plot" }, figure.svg, figure.tip);
    figure.plot.style.minHeight = "300px";
    figure.remark = R.html("p", { class: "remark" });
    const button = (text, title, click) =>
      R.html("button", { type: "button", class: "small", title, "aria-label":
        `${title}: ${chart.title}`, on: { click } }, text);
    figure.node = R.html("figure", { class: `chart ${chart.kind}`, id: `chart-${chart.id}`,
      "data-index": index },
    R.html("div", { class: "head" }, R.html("h3", {}, chart.title),
      R.html("div", { class: "tools" },
        button("SVG", "Save as SVG", () => R.save(`${name}.svg`, "image/svg+xml", R.standalone(chart))),
        button("CSV", "Save the data as CSV", () => R.save(`${name}.csv`, "text/csv", R.csv(chart))))),
    figure.plot, R.html("figcaption", {}, chart.caption || ""), figure.remark);
    R.figures.push(figure);
    listen(figure);
    watcher.observe(figure.node);
    return figure.node;
  };
})(window.wgpReport);
