/* Box charts (one row for each agent) and heat maps. */
(function (R) {
  "use strict";

  /* ---- boxes ---- */
  function rows(chart, width) {
    const boxes = chart.boxes.filter((b) => R.isOn(b.agent) && R.known(b.quantiles[3]));
    const longest = Math.max(40, ...boxes.map((b) => R.width(R.label(b))));
    const above = width < 560;
    const many = boxes.length > 16;
    const step = (above ? 54 : 38) - (many ? 10 : 0);
    const left = above ? 6 : Math.min(longest + 14, width * 0.3);
    const top = 10;
    const frame = { left, right: width - 14, top, bottom: top + Math.max(1, boxes.length) * step };
    boxes.forEach((b, k) => { b.at = top + k * step + (above ? step - 20 : step / 2); });
    return { boxes, frame, above, step };
  }

  function box(b, x, frame, above, log) {
    const px = (v) => x(log && v <= 0 ? x.domain[0] : v);
    const [low, q05, q25, median, q75, q95, high] = b.quantiles.map(px);
    const h = 9;
    const g = R.svg("g", { class: `series box ${R.tone(b.agent)}`, "data-agent": b.agent });
    (b.points || []).forEach((value, k) => {
      if (!R.known(value) || (log && value <= 0)) return;
      // Multiples of the golden ratio spread the points evenly, and the same way each time.
      const shift = (((k + 1) * 0.618034) % 1) * 2 - 1;
      g.append(R.svg("circle", { class: "point", cx: px(value), cy: b.at + shift * h, r: 1.8 }));
    });
    g.append(
      R.svg("line", { class: "thin line", x1: q05, x2: q25, y1: b.at, y2: b.at }),
      R.svg("line", { class: "thin line", x1: q75, x2: q95, y1: b.at, y2: b.at }),
      ...[q05, q95].map((v) =>
        R.svg("line", { class: "thin line", x1: v, x2: v, y1: b.at - 5, y2: b.at + 5 })),
      ...[low, high].map((v) =>
        R.svg("line", { class: "thin line", x1: v, x2: v, y1: b.at - 2, y2: b.at + 2 })),
      R.svg("rect", { class: "body", x: q25, y: b.at - h, width: Math.max(1, q75 - q25),
        height: 2 * h, rx: 1.5 }),
      R.svg("line", { class: "median", x1: median, x2: median, y1: b.at - h, y2: b.at + h }));
    if (R.known(b.mean)) {
      const m = px(b.mean);
      g.append(R.svg("path", { class: "mean",
        d: `M${m},${b.at - 4.5}l4.5,4.5l-4.5,4.5l-4.5,-4.5z` }));
    }
    const name = above ? { x: frame.left, y: b.at - 16 }
      : { x: frame.left - 12, y: b.at + 4, "text-anchor": "end" };
    g.append(R.svg("text", name,
      R.fit(R.label(b), above ? frame.right - frame.left : frame.left - 12)));
    return g;
  }

  R.kinds.boxes = (chart, svg, width) => {
    const { boxes, frame, above, step } = rows(chart, width);
    const log = chart.x_log;
    const values = boxes.flatMap((b) => b.quantiles.concat(b.points || [], [b.mean]));
    const x = R.scale(R.padded(R.extent(values, log, true), log), [frame.left, frame.right], log,
      (frame.right - frame.left) / 90);
    R.axisX(svg, x, frame, chart.x_label);
    boxes.forEach((b) => svg.append(box(b, x, frame, above, log)));
    const names = ["smallest", "5 % quantile", "lower quartile", "median", "upper quartile",
      "95 % quantile", "largest"];
    return {
      height: frame.bottom + 44,
      remark: boxes.length ? "" : "All agents of this chart are switched off.",
      empty: !boxes.length,
      pick: (px, py) => ({
        i: Math.min(boxes.length - 1, Math.max(0, Math.floor((py - frame.top) / step))),
      }),
      step: (cursor, key) => {
        if (!cursor || key === "Home") return { i: 0 };
        const by = key === "ArrowUp" || key === "ArrowLeft" ? -1 : 1;
        const next = key === "End" ? boxes.length : cursor.i + by;
        return { i: Math.min(boxes.length - 1, Math.max(0, next)) };
      },
      describe: ({ i }) => {
        const b = boxes[i];
        return {
          title: R.label(b), agent: b.agent, gap: 14,
          at: [x(b.quantiles[3]), b.at + 18], under: b.at + 18,
          rows: [...names.map((label, k) => ({ label, value: b.quantiles[k], hot: k === 3 })),
            { label: "mean", value: b.mean }],
        };
      },
      paint: (g, { i }) => g.append(R.svg("rect", { class: "row", x: 0, width,
        y: frame.top + i * step, height: step })),
    };
  };

  /* ---- heat maps ---- */
  // One hue, even steps of lightness (OKLCH); the second ramp is for dark backgrounds.
  const RAMPS = [{ from: 0.97, to: 0.38 }, { from: 0.27, to: 0.88 }];

  function oklch(l, c, hue) {
    const a = c * Math.cos(hue);
    const b = c * Math.sin(hue);
    const [p, q, r] = [l + 0.3963377774 * a + 0.2158037573 * b,
      l - 0.1055613458 * a - 0.0638541728 * b, l - 0.0894841775 * a - 1.291485548 * b]
      .map((v) => v ** 3);
    return [4.0767416621 * p - 3.3077115913 * q + 0.2309699292 * r,
      -1.2684380046 * p + 2.6097574011 * q - 0.3413193965 * r,
      -0.0041960863 * p - 0.7034186147 * q + 1.707614701 * r]
      .map((v) => Math.min(1, Math.max(0, v)));
  }

  function shade(share, ramp) {
    const l = ramp.from + share * (ramp.to - ramp.from);
    // Less colour towards white and black, where the screen has less to give.
    const linear = oklch(l, 0.115 * (1 - Math.abs(l - 0.55) / 0.5), 4.36);
    const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    const rgb = linear.map((v) => Math.round(255 *
      (v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055)));
    return { fill: `rgb(${rgb.join(",")})`, ink: luminance > 0.18 ? "#000000" : "#ffffff" };
  }

  /* The attribute is for browsers without light-dark(), which ignore the property. */
  function toned(tag, attributes, share, what, ...children) {
    const [light, dark] = RAMPS.map((ramp) => shade(share, ramp)[what]);
    return R.svg(tag, { ...attributes, fill: light,
      style: { fill: `light-dark(${light}, ${dark})` } }, ...children);
  }

  function grid(chart, width) {
    const labels = { x: (chart.x || []).map(String), y: (chart.y || []).map(String) };
    const longest = Math.max(20, ...labels.y.map((t) => R.width(t)));
    const left = Math.min(longest + 10, width * 0.34);
    const w = Math.min(110, (width - left - 6) / Math.max(1, labels.x.length));
    const h = Math.min(40, Math.max(24, w * 0.6));
    const widest = Math.max(0, ...labels.x.map((t) => R.width(t)));
    const turned = widest > w - 4;
    const frame = { left, top: 26, right: left + w * labels.x.length,
      bottom: 26 + h * labels.y.length };
    return { labels, w, h, turned, frame, drop: turned ? Math.min(widest, 110) * 0.64 + 12 : 20 };
  }

  function gridLabels(svg, chart, { labels, w, h, turned, frame, drop }) {
    svg.append(R.svg("text", { class: "name", x: 0, y: 13 }, chart.y_label || ""));
    labels.y.forEach((text, j) => svg.append(R.svg("text", { x: frame.left - 8,
      y: frame.top + (j + 0.5) * h + 4, "text-anchor": "end" }, R.fit(text, frame.left - 8))));
    labels.x.forEach((text, i) => {
      const px = frame.left + (i + 0.5) * w;
      const py = frame.bottom + 16;
      svg.append(R.svg("text", turned
        ? { x: px, y: py, "text-anchor": "end", transform: `rotate(-40 ${px} ${py})` }
        : { x: px, y: py, "text-anchor": "middle" }, R.fit(text, 110)));
    });
    svg.append(R.svg("text", { class: "name", x: (frame.left + frame.right) / 2,
      y: frame.bottom + drop + 16, "text-anchor": "middle" }, chart.x_label || ""));
  }

  function scaleBar(svg, chart, [low, high], left, top) {
    const text = [low, high].map((v) => R.format(v));
    const from = left + R.width(text[0]) + 8;
    for (let k = 0; k < 24; k += 1) {
      svg.append(toned("rect", { x: from + k * 5, y: top, width: 5.5, height: 10 }, k / 23, "fill"));
    }
    svg.append(R.svg("text", { x: left, y: top + 9 }, text[0]),
      R.svg("text", { x: from + 128, y: top + 9 }, `${text[1]} ${chart.unit || ""}`.trim()));
  }

  R.kinds.heatmap = (chart, svg, width) => {
    const layout = grid(chart, width);
    const { labels, w, h, frame, drop } = layout;
    const known = chart.values.flat().filter(R.known);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const best = { true: low, false: high }[chart.low_is_best];
    const decimals = chart.digits ?? R.decimals(known.length ? known : [0]);
    const fits = (d) => known.every((v) => R.width(R.format(v, d)) <= w - 6);
    const fewer = chart.digits === undefined ? Math.max(0, decimals - 2) : decimals;
    const printed = [decimals, fewer].find(fits) ?? null;
    const outlines = [];
    gridLabels(svg, chart, layout);
    labels.y.forEach((_, j) => labels.x.forEach((__, i) => {
      const value = (chart.values[j] || [])[i];
      const place = { x: frame.left + i * w, y: frame.top + j * h, width: w, height: h };
      const text = { x: place.x + w / 2, y: place.y + h / 2 + 4, "text-anchor": "middle" };
      if (!R.known(value)) {
        svg.append(R.svg("rect", { class: "void", ...place }), R.svg("text", text, "\u2013"));
        return;
      }
      const share = high > low ? (value - low) / (high - low) : 0.5;
      svg.append(toned("rect", { class: "cell", ...place }, share, "fill"));
      if (printed !== null) svg.append(toned("text", text, share, "ink", R.format(value, printed)));
      if (value === best) outlines.push(R.svg("rect", { class: "best", x: place.x + 1,
        y: place.y + 1, width: w - 2, height: h - 2 }));
    }));
    svg.append(...outlines);
    const foot = frame.bottom + drop + (chart.x_label ? 30 : 12);
    if (known.length) scaleBar(svg, chart, [low, high], frame.left, foot);
    const columns = labels.x.length;
    return { height: foot + 18, remark: "", empty: !columns || !labels.y.length,
      ...cells(chart, layout, decimals) };
  };

  function cells(chart, { labels, w, h, frame }, decimals) {
    const clamp = (v, n) => Math.min(n - 1, Math.max(0, v));
    const at = (i, j) => ({ i: clamp(i, labels.x.length), j: clamp(j, labels.y.length) });
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    return {
      pick: (px, py) => at(Math.floor((px - frame.left) / w), Math.floor((py - frame.top) / h)),
      step: (cursor, key) => {
        if (!cursor || key === "Home") return at(0, 0);
        if (key === "End") return at(Infinity, Infinity);
        return at(cursor.i + moves[key][0], cursor.j + moves[key][1]);
      },
      describe: ({ i, j }) => ({
        title: `${chart.x_label || "x"} = ${labels.x[i]}, ${chart.y_label || "y"} = ${labels.y[j]}`,
        at: [frame.left + (i + 0.5) * w, frame.top + j * h], gap: w / 2 + 6,
        under: frame.top + (j + 1) * h + 6,
        rows: [{ label: chart.unit || "value", value: (chart.values[j] || [])[i], hot: true }],
        decimals,
      }),
      paint: (g, { i, j }) => g.append(R.svg("rect", { class: "focus", x: frame.left + i * w,
        y: frame.top + j * h, width: w, height: h })),
    };
  }
})(window.wgpReport);
