/* Axes, legends and line charts. A kind of chart draws into an svg and returns a model of it:
   pick(px, py) and step(cursor, key) give a cursor, describe(cursor) its values, paint marks it. */
(function (R) {
  "use strict";
  const LABELLED = 8;
  const BANDED = 12;
  const LEGEND = 16;
  R.kinds = {};
  // A line of no one agent may have the colour of one.
  const tone = (s) => R.tone(s.like === undefined ? s.agent : s.like);

  R.axisX = (svg, x, frame, title) => {
    const g = R.svg("g", { class: "axis" });
    for (const tick of x.ticks) {
      const at = x(tick.at);
      g.append(
        R.svg("line", { class: "grid", x1: at, x2: at, y1: frame.top, y2: frame.bottom }),
        R.svg("text", { x: at, y: frame.bottom + 17, "text-anchor": "middle" }, tick.text));
    }
    const middle = (frame.left + frame.right) / 2;
    g.append(R.svg("text", { class: "name", x: middle, y: frame.bottom + 36,
      "text-anchor": "middle" }, title || ""));
    svg.append(g);
  };

  R.axisY = (svg, y, frame, title) => {
    const g = R.svg("g", { class: "axis" });
    for (const tick of y.ticks) {
      const at = y(tick.at);
      g.append(
        R.svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: at, y2: at }),
        R.svg("text", { x: frame.left - 8, y: at + 4, "text-anchor": "end" }, tick.text));
    }
    g.append(R.svg("text", { class: "name", x: 0, y: 13 }, title || ""));
    svg.append(g);
  };

  R.legend = (svg, items, frame, top) => {
    let x = frame.left;
    let y = top;
    const limit = Math.max(80, frame.right - frame.left - 34);
    for (const item of items) {
      const text = R.fit(R.label(item), limit);
      const width = R.width(text) + 50;
      if (x > frame.left && x + width - 16 > frame.right) {
        x = frame.left;
        y += 20;
      }
      svg.append(
        R.svg("line", { class: `line ${tone(item)}`, x1: x, x2: x + 24, y1: y, y2: y,
          "stroke-dasharray": item.dash }),
        R.svg("text", { x: x + 30, y: y + 4 }, text));
      x += width;
    }
    return y + 12;
  };

  /* Labels at the ends of the lines, pushed apart where they would overlap. */
  function endLabels(svg, series, frame, x, y) {
    const ends = series.map((s) => {
      let last = s.y.length - 1;
      while (last >= 0 && !s.shown(last)) last -= 1;
      return last < 0 ? null : { s, px: x(s.x[last]), py: y(s.y[last]), at: y(s.y[last]) };
    }).filter(Boolean).sort((a, b) => a.py - b.py);
    const gap = 16;
    ends.forEach((end, k) => { if (k) end.at = Math.max(end.at, ends[k - 1].at + gap); });
    let limit = frame.bottom;
    for (const end of ends.slice().reverse()) {
      end.at = Math.min(end.at, limit);
      limit = end.at - gap;
    }
    for (const { s, px, py, at } of ends) {
      const from = frame.right + 4;
      svg.append(
        R.svg("path", { class: `leader ${tone(s)}`,
          d: `M${px + 2},${py}H${Math.max(px + 2, from)}L${from + 12},${at}` }),
        R.svg("line", { class: `line ${tone(s)}`, x1: from + 12, x2: from + 32,
          y1: at, y2: at, "stroke-dasharray": s.dash }),
        R.svg("text", { x: from + 37, y: at + 4 },
          R.fit(R.label(s), frame.width - from - 37)));
    }
  }

  function path(s, x, y) {
    let d = "";
    let pen = "M";
    for (let k = 0; k < s.y.length; k += 1) {
      if (s.shown(k)) {
        d += `${pen}${x(s.x[k]).toFixed(1)},${y(s.y[k]).toFixed(1)}`;
        pen = "L";
      } else pen = "M";
    }
    return d;
  }

  function band(s, x, y, log) {
    const floor = y.domain[0];
    const clip = (v) => y(log && v <= 0 ? floor : v).toFixed(1);
    let d = "";
    let run = [];
    const close = () => {
      if (run.length > 1) {
        d += "M" + run.map((k) => `${x(s.x[k]).toFixed(1)},${clip(s.high[k])}`).join("L");
        d += "L" + run.reverse().map((k) => `${x(s.x[k]).toFixed(1)},${clip(s.low[k])}`).join("L");
        d += "Z";
      }
      run = [];
    };
    for (let k = 0; k < s.y.length; k += 1) {
      if (s.shown(k) && R.known(s.low[k]) && R.known(s.high[k])) run.push(k);
      else close();
    }
    close();
    return d;
  }

  function prepare(chart) {
    const free = chart.series.filter((s) => !R.agents[s.agent]);
    const visible = chart.series.filter((s) => R.isOn(s.agent)).map((s) => {
      const x = s.x || chart.x || s.y.map((_, k) => k + 1);
      const shown = (k) => R.known(x[k]) && R.known(s.y[k]) &&
        (!chart.x_log || x[k] > 0) && (!chart.y_log || s.y[k] > 0);
      const dash = R.agents[s.agent] ? R.dash(s.agent)
        : R.dashes[free.indexOf(s) % R.dashes.length];
      return { ...s, x, shown, dash, index: new Map(x.map((at, k) => [at, k])) };
    });
    const banded = visible.length <= BANDED;
    const values = visible.flatMap((s) => s.y.concat(
      banded && s.low && s.high ? s.low.concat(s.high) : []));
    return { visible, banded, values };
  }

  function marks(svg, chart, x, frame) {
    const [low, high] = x.domain;
    (chart.marks || []).filter((at) => at >= low && at <= high).forEach((at, k) => {
      svg.append(R.svg("line", { class: "mark", x1: x(at), x2: x(at),
        y1: frame.top, y2: frame.bottom }));
      if (k || !chart.mark_label) return;
      const end = x(at) + R.width(chart.mark_label) + 6 > frame.right;
      svg.append(R.svg("text", { class: "faint", x: x(at) + (end ? -5 : 5), y: frame.top - 4,
        "text-anchor": end ? "end" : "start" }, chart.mark_label));
    });
  }

  function layout(chart, visible, values, width) {
    const direct = visible.length <= LABELLED && width >= 560;
    const longest = Math.max(0, ...visible.map((s) => R.width(R.label(s))));
    const right = direct ? Math.min(longest + 46, width * 0.32) : 14;
    const height = Math.round(Math.min(400, Math.max(270, width * 0.48)));
    const frame = { width, top: chart.marks && chart.marks.length ? 38 : 26, bottom: height - 44 };
    const log = chart.y_log;
    const y = R.scale(R.padded(R.extent(values, log, true), log), [frame.bottom, frame.top], log,
      (frame.bottom - frame.top) / 42);
    frame.left = Math.max(...y.ticks.map((t) => R.width(t.text)), 16) + 10;
    frame.right = width - right;
    const xs = Array.from(new Set(visible.flatMap((s) => s.x)))
      .filter((v) => R.known(v) && (!chart.x_log || v > 0)).sort((a, b) => a - b);
    const x = R.scale(R.extent(xs, chart.x_log, false), [frame.left, frame.right], chart.x_log,
      (frame.right - frame.left) / 80);
    return { frame, height, x, y, xs, direct };
  }

  R.kinds.lines = (chart, svg, width, full) => {
    const { visible, banded, values } = prepare(chart);
    const { frame, height, x, y, xs, direct } = layout(chart, visible, values, width);
    R.axisX(svg, x, frame, chart.x_label);
    R.axisY(svg, y, frame, chart.y_label);
    marks(svg, chart, x, frame);
    const order = visible.slice().reverse();
    for (const s of banded ? order.filter((t) => t.low && t.high) : []) {
      svg.append(R.svg("path", { class: `band ${tone(s)}`, d: band(s, x, y, chart.y_log) }));
    }
    for (const s of order) {
      const thin = (R.agents[s.agent] && R.agents[s.agent].reference) || visible.length > BANDED;
      const g = R.svg("g", { class: `series ${tone(s)}`, "data-agent": s.agent });
      if (s.line !== false) {
        g.append(R.svg("path", { class: thin ? "line thin" : "line", d: path(s, x, y),
          "stroke-dasharray": s.dash }));
      }
      for (let k = 0; s.markers && k < s.y.length; k += 1) {
        if (s.shown(k)) g.append(R.svg("circle", { class: "dot", r: 3.5, cx: x(s.x[k]), cy: y(s.y[k]) }));
      }
      svg.append(g);
    }
    let bottom = height;
    if (direct) endLabels(svg, visible, frame, x, y);
    else if (full || visible.length <= LEGEND) bottom = R.legend(svg, visible, frame, height + 8);
    return { height: bottom, remark: remark(visible, banded, direct, chart),
      ...model(chart, visible, frame, x, y, xs) };
  };

  function remark(visible, banded, direct, chart) {
    const said = [];
    const bands = chart.series.some((s) => s.low && s.high);
    if (!visible.length) said.push("All agents of this chart are switched off.");
    if (!banded && bands) said.push(`Bands are not drawn while more than ${BANDED} lines are visible.`);
    if (!direct && visible.length > LEGEND) said.push("The colours are those of the agent list.");
    for (const s of visible) if (s.note) said.push(`${R.label(s)}: ${s.note}.`.replace(/\.\.$/, "."));
    return said.join(" ");
  }

  function model(chart, visible, frame, x, y, xs) {
    const at = (cursor) => visible
      .map((s) => ({ s, k: s.index.get(xs[cursor.i]) }))
      .filter(({ s, k }) => k !== undefined && s.shown(k));
    const nearest = (value) => {
      let best = 0;
      xs.forEach((v, k) => { if (Math.abs(x(v) - value) < Math.abs(x(xs[best]) - value)) best = k; });
      return best;
    };
    return {
      empty: !xs.length,
      pick: (px, py) => {
        const cursor = { i: nearest(px), near: null };
        let closest = 40;
        for (const { s, k } of at(cursor)) {
          const away = Math.abs(y(s.y[k]) - py);
          if (away < closest) [closest, cursor.near] = [away, s];
        }
        return cursor;
      },
      step: (cursor, key) => {
        const last = xs.length - 1;
        if (key === "Home" || (!cursor && key !== "End")) return { i: key === "ArrowLeft" ? last : 0 };
        if (key === "End") return { i: last };
        const by = key === "ArrowLeft" || key === "ArrowDown" ? -1 : 1;
        return { i: Math.min(last, Math.max(0, cursor.i + by)) };
      },
      describe: (cursor) => ({
        title: `${chart.x_label || "x"} = ${R.format(xs[cursor.i])}`,
        // On a narrow screen it goes under the lines, which it would hide.
        at: [x(xs[cursor.i]), frame.width < 560 ? frame.bottom + 42 : frame.top],
        gap: 14,
        under: frame.bottom + 42,
        rows: at(cursor).map(({ s, k }) => ({ agent: s.agent, dash: s.dash, label: R.label(s), value: s.y[k],
          low: s.low && s.low[k], high: s.high && s.high[k], hot: s === cursor.near,
        })).sort((a, b) => a.value - b.value),
      }),
      paint: (g, cursor) => {
        const px = x(xs[cursor.i]);
        g.append(R.svg("line", { class: "cross", x1: px, x2: px, y1: frame.top, y2: frame.bottom }));
        for (const { s, k } of at(cursor)) {
          g.append(R.svg("circle", { class: `ring ${tone(s)}`, cx: px, cy: y(s.y[k]),
            r: s === cursor.near ? 5 : 3.5 }));
        }
      },
    };
  }
})(window.wgpReport);
