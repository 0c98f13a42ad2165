/* Elements, numbers, scales and the state of the page. Everything else builds on these. */
window.wgpReport = {};
(function (R) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "on") {
        for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
      } else if (name === "style") {
        // Through the CSSOM: the page's security policy forbids style attributes.
        for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
      } else {
        node.setAttribute(name, value === true ? "" : value);
      }
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) node.append(child);
    }
    return node;
  }

  R.html = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
  R.svg = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
  R.one = (selector, root) => (root || document).querySelector(selector);
  R.all = (selector, root) => Array.from((root || document).querySelectorAll(selector));

  R.content = JSON.parse(R.one("#content").textContent);
  R.agents = R.content.agents || [];
  R.state = { task: 0, off: new Set(), sort: new Map() };
  R.isOn = (agent) => agent === null || agent === undefined || !R.state.off.has(agent);
  R.tone = (agent) => (agent === null || agent === undefined ? "plain" : `a${agent}`);
  // Lines of no agent share one colour; their dashes tell them apart.
  R.dashes = [null, "7 4", "2 3", "9 3 2 3", "14 4"];
  R.dash = (agent) => (R.agents[agent] && R.agents[agent].dash) || null;
  R.label = (item) =>
    item.label || (R.agents[item.agent] && R.agents[item.agent].label) || "all agents";

  /* ---- numbers ---- */
  R.known = (value) => typeof value === "number" && Number.isFinite(value);

  /* Decimals that give the smallest value three significant digits, the largest six at most. */
  R.decimals = (values) => {
    const sizes = values.filter((v) => R.known(v) && v !== 0).map(Math.abs);
    if (!sizes.length) return 0;
    const wanted = 2 - Math.floor(Math.log10(Math.min(...sizes)));
    const most = 5 - Math.floor(Math.log10(Math.max(...sizes)));
    return Math.min(8, Math.max(0, Math.min(wanted, most)));
  };

  function grouped(text) {
    const [whole, fraction] = text.split(".");
    const spaced = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
    return fraction ? `${spaced}.${fraction}` : spaced;
  }

  R.format = (value, decimals) => {
    if (!R.known(value)) return "\u2013";
    const size = Math.abs(value);
    const digits = decimals !== undefined ? decimals
      : size === 0 ? 0 : Math.min(8, Math.max(0, 3 - Math.floor(Math.log10(size))));
    const far = size >= 1e9 || (size > 0 && size < 0.5 * 10 ** -digits && size < 1e-4);
    let text = far ? size.toExponential(2) : size.toFixed(digits);
    if (!far && decimals === undefined && text.includes(".")) text = text.replace(/\.?0+$/, "");
    return (value < 0 && Number(text) !== 0 ? "\u2212" : "") + (far ? text : grouped(text));
  };

  R.interval = (low, high, decimals) =>
    R.known(low) && R.known(high)
      ? `${R.format(low, decimals)} to ${R.format(high, decimals)}` : "";

  /* ---- scales ---- */
  function linearTicks(low, high, count) {
    const raw = (high - low) / Math.max(1, count);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const ticks = [];
    const last = Math.floor(high / step + 1e-9);
    for (let k = Math.ceil(low / step - 1e-9); k <= last; k += 1) ticks.push(k * step);
    return { ticks, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
  }

  function logTicks(low, high, count) {
    const first = Math.floor(Math.log10(low) + 1e-9);
    const last = Math.ceil(Math.log10(high) - 1e-9);
    const collect = (multiples, stride) => {
      const ticks = [];
      for (let k = first; k <= last; k += stride) {
        for (const m of multiples) ticks.push(m * 10 ** k);
      }
      return ticks.filter((t) => t >= low * 0.999999 && t <= high * 1.000001);
    };
    const dense = [[1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map((m) => collect(m, 1));
    const fits = dense.find((ticks) => ticks.length <= Math.max(4, count));
    const ticks = fits || collect([1], Math.ceil((last - first) / Math.max(3, count)));
    return ticks.length >= 2 ? ticks : linearTicks(low, high, count).ticks;
  }

  /* The range of the values, widened where it is empty; a linear axis near zero starts there. */
  R.extent = (values, log, anchor) => {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (!R.known(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low > high) return log ? [1, 10] : [0, 1];
    if (log) return low === high ? [low / 2, high * 2] : [low, high];
    if (anchor && low > 0 && low < 0.35 * high) low = 0;
    if (anchor && high < 0 && high > 0.35 * low) high = 0;
    const half = Math.abs(low) / 10 || 0.5;
    return low === high ? [low - half, high + half] : [low, high];
  };

  R.padded = ([low, high], log) => {
    if (log) return [low / (high / low) ** 0.04, high * (high / low) ** 0.04];
    const room = (high - low) * 0.04;
    return [low === 0 ? 0 : low - room, high === 0 ? 0 : high + room];
  };

  R.scale = (domain, range, log, count) => {
    const f = log ? Math.log10 : (v) => v;
    const [a, b] = domain.map(f);
    const map = (value) => range[0] + ((f(value) - a) / (b - a)) * (range[1] - range[0]);
    const linear = log ? null : linearTicks(domain[0], domain[1], count);
    const ticks = log ? logTicks(domain[0], domain[1], count) : linear.ticks;
    map.domain = domain;
    map.ticks = ticks.map((at) => ({
      at, text: log ? R.format(at) : R.format(at, Math.min(8, linear.decimals)),
    }));
    return map;
  };

  /* ---- text widths: a canvas measures without touching the layout ---- */
  const pen = document.createElement("canvas").getContext("2d");
  R.font = "12px " + getComputedStyle(document.documentElement).getPropertyValue("--sans");
  const widths = new Map();
  R.width = (text) => {
    if (!widths.has(text)) {
      pen.font = R.font;
      widths.set(text, pen.measureText(text).width);
    }
    return widths.get(text);
  };
  R.fit = (text, room) => {
    if (R.width(text) <= room) return text;
    // What tells labels apart stands at their ends as often as at their starts.
    const cut = (n) => `${text.slice(0, Math.ceil(0.6 * n)).trimEnd()}\u2026${
      text.slice(text.length - Math.floor(0.4 * n)).trimStart()}`;
    let n = text.length - 1;
    while (n > 2 && R.width(cut(n)) > room) n -= 1;
    return cut(n);
  };

  R.swatch = (agent, dash) =>
    R.svg("svg", { class: `swatch ${R.tone(agent)}`, width: 26, height: 10, "aria-hidden": "true" },
      R.svg("line", { x1: 1, x2: 25, y1: 5, y2: 5, "stroke-dasharray": dash || R.dash(agent) }));
})(window.wgpReport);
