"use strict";
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const charts = JSON.parse(one("#data").textContent);
const switches = all("#legend input");
const isOn = (agent) => switches[agent].checked;
const colour = (selector, name = "color") => getComputedStyle(one(selector))[name];
const root = document.documentElement;
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const MANY = 8; // agents, beyond which bands and shared hover labels cover each other
const isPrinting = () => root.classList.contains("printing");

// What all charts share: the colours of the paper, and what the pointer shows.
function template(shown) {
  const [ink, paper] = [colour("html"), colour("html", "backgroundColor")];
  const axis = { gridcolor: colour("#page", "borderTopColor"), zeroline: false, automargin: true };
  return { layout: {
    font: { color: ink, family: "system-ui, sans-serif", size: 12 }, xaxis: axis, yaxis: axis,
    paper_bgcolor: paper, plot_bgcolor: paper, margin: { l: 55, r: 15, t: 15, b: 45 },
    showlegend: false, legend: { orientation: "h", y: -0.2 },
    hovermode: shown > MANY ? "closest" : "x unified",
    hoverlabel: { bgcolor: paper, font: { color: ink }, namelength: -1 },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
  } };
}

// Plotly's traces of a line: its band, if there is room for it, and the line itself.
function lines(trace, x, banded) {
  const color = colour(trace.like === null ? "html" : `.a${trace.like}`);
  const marker = { ...trace.marker, color };
  const line = { x, hovertemplate: "%{y:.4~g}", ...trace, marker, line: { ...trace.line, color } };
  if (!trace.low) return [line];
  line.customdata = trace.low.map((low, k) => [low, trace.high[k]]);
  line.hovertemplate += " (%{customdata[0]:.4~g} to %{customdata[1]:.4~g})";
  const band = {
    x: x.concat([...x].reverse()), y: trace.high.concat([...trace.low].reverse()),
    mode: "lines", fill: "toself", line: { width: 0 }, showlegend: false, hoverinfo: "skip",
    fillcolor: color.replace("rgb(", "rgba(").replace(")", ", 0.12)"),
  };
  return banded ? [band, line] : [line];
}

// Plotly's figure of a chart, with the agents that are switched on.
function figure({ kind, data, layout, x, agents }) {
  const shown = data.filter(({ agent = null }) => agent === null || isOn(agent));
  const narrow = root.clientWidth < 800;
  const common = { height: 400, ...layout, template: template(shown.length) };
  const traces = (made) => ({ data: shown.flatMap(made), layout: common });
  if (kind === "lines") return traces((trace) => lines(trace, x, shown.length <= MANY));
  common.hovermode = "closest";
  if (kind === "boxes") {
    const names = shown.map(({ name }) => name);
    const inside = narrow || names.some((name) => name.length > 45); // above the boxes
    common.height = 90 + (inside ? 56 : 36) * shown.length;
    const rows = { tickvals: [...names.keys()], ticktext: names, showticklabels: !inside };
    common.yaxis = { ...layout.yaxis, ...rows, range: [shown.length - 0.4, -0.6] };
    const left = { xref: "paper", x: 0, xanchor: "left", showarrow: false, visible: inside };
    common.annotations = names.map((text, k) => ({ ...left, text, y: k - 0.4 }));
    const line = ({ like }) => ({ color: colour(`.a${like}`), width: 1.3 });
    return traces((trace, k) => ({ ...trace, y: [k], line: line(trace) }));
  }
  if (!agents.length) return { data, layout: common };
  const kept = [...agents.keys()].filter((k) => isOn(agents[k]));
  const pick = (values) => kept.map((k) => values[k]);
  const [map] = data;
  const y = pick(narrow ? map.meta : map.y);
  common.height = 100 + 28 * kept.length;
  return { data: [{ ...map, x: pick(map.x), y, z: pick(map.z).map(pick) }], layout: common };
}

function draw(chart) {
  const { data, layout } = figure(charts[chart.dataset.chart]);
  if (isPrinting()) layout.width = 680;
  const plot = chart.querySelector(".plot");
  Plotly.react(plot, data, layout, { displayModeBar: false, responsive: true });
  chart.dataset.drawn = "";
}

function save(chart, format) {
  const { data, layout } = figure(charts[chart.dataset.chart]);
  const filename = chart.querySelector("h3").textContent;
  layout.title = { text: filename.replace(/&/g, "&amp;").replace(/</g, "&lt;") };
  const showlegend = charts[chart.dataset.chart].kind === "lines";
  Object.assign(layout, { margin: { t: 50 }, showlegend });
  const size = { width: 900, height: layout.height + 120, scale: 2 };
  return Plotly.downloadImage({ data, layout }, { format, filename, ...size });
}

// Charts are drawn when they come into view, and anew when something has changed.
const near = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    near[isIntersecting ? "add" : "delete"](target);
    if (isIntersecting && !("drawn" in target.dataset)) setTimeout(draw, 0, target);
  }
}, { rootMargin: "200px" });

function refresh() {
  const task = one("#task").value;
  if (isPrinting()) one("#legend").open = true;
  for (const part of all("[data-task]")) part.hidden = !["", task].includes(part.dataset.task);
  for (const row of all("tr[data-agent]")) row.hidden = !isOn(row.dataset.agent);
  for (const chart of all(".chart")) {
    delete chart.dataset.drawn;
    if (!chart.hidden && (isPrinting() || near.has(chart))) draw(chart);
  }
}

// In other colours charts are drawn anew: Plotly's update may keep some of the old ones.
const repaint = () => { all(".plot").forEach((plot) => Plotly.purge(plot)); refresh(); };

function sort(heading) {
  const up = heading.ariaSort !== "ascending";
  for (const other of heading.parentNode.cells) other.ariaSort = null;
  heading.ariaSort = up ? "ascending" : "descending";
  const [body] = heading.closest("table").tBodies;
  const value = (row) => row.cells[heading.cellIndex].dataset.value;
  const order = (a, b) => (heading.dataset.numeric ? a - b : a.localeCompare(b)) * (up ? 1 : -1);
  const compare = (a, b) => (a === "") - (b === "") || order(a, b); // what is missing comes last
  body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
}

for (const heading of all(".sortable th")) {
  heading.querySelector("button").addEventListener("click", () => sort(heading));
}
for (const button of all("[data-save]")) {
  button.addEventListener("click", () => save(button.closest("figure"), button.dataset.save));
}
for (const button of all("[data-pick]")) {
  button.addEventListener("click", () => {
    const wanted = { all: () => true, none: () => false, best: (one) => "best" in one.dataset };
    for (const box of switches) box.checked = wanted[button.dataset.pick](box);
    refresh();
  });
}
one("#controls").addEventListener("change", refresh);
one("#theme").addEventListener("click", () => {
  const isDark = (root.dataset.theme ?? (systemIsDark.matches ? "dark" : "light")) === "dark";
  root.dataset.theme = isDark ? "light" : "dark";
  repaint();
});
systemIsDark.addEventListener("change", repaint);
addEventListener("beforeprint", () => { root.classList.add("printing"); refresh(); });
addEventListener("afterprint", () => { root.classList.remove("printing"); refresh(); });
one("#legend").open = root.clientWidth > 800;
for (const id of ["#theme", "#controls", "#charts"]) one(id).hidden = false;
refresh();
all(".chart").forEach((chart) => watcher.observe(chart));
