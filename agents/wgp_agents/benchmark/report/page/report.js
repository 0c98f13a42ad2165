/* The page: task, agents, tables, theme, and the address that holds the view. */
(function (R) {
  "use strict";
  const { content, state, agents } = R;
  const root = document.documentElement;
  root.classList.add("js");

  /* ---- charts, grouped into sections ---- */
  function buildCharts() {
    const sections = new Map();
    (content.charts || []).forEach((chart, index) => {
      const name = chart.section || "Charts";
      if (!sections.has(name)) {
        const id = `section-${sections.size}`;
        const grid = R.html("div", { class: "mosaic" });
        const node = R.html("section", { id, class: "charts" },
          R.html("h2", {}, name, " ", R.html("span", { class: "of" })), grid);
        sections.set(name, { id, grid, node });
        R.one("#charts").append(node);
        R.one("#contents ol").insertBefore(R.html("li", {},
          R.html("a", { href: `#${id}` }, name)), R.one("#contents .after"));
      }
      sections.get(name).grid.append(R.makeFigure(chart, index));
    });
  }

  function showTask() {
    const task = (content.tasks || [])[state.task];
    for (const { node, chart } of R.figures) {
      const other = chart.task !== null && chart.task !== undefined && chart.task !== state.task;
      node.hidden = other || (chart.kind === "heatmap" && !R.isOn(chart.agent));
    }
    for (const table of R.all("figure.table")) {
      table.hidden = table.dataset.task !== "" && Number(table.dataset.task) !== state.task;
    }
    const tables = R.one("#tables");
    if (tables) tables.hidden = !R.all("figure.table:not([hidden])").length;
    for (const section of R.all("section.charts")) {
      const shown = R.figures.filter((f) => section.contains(f.node) && !f.node.hidden);
      section.hidden = !shown.length;
      const maps = shown.filter((f) => f.chart.kind === "heatmap");
      maps.forEach((f) => f.node.classList.toggle("half",
        maps.length > 1 && (f.chart.x || []).length <= 8));
      R.one(`#contents a[href="#${section.id}"]`).parentNode.hidden = !shown.length;
      const own = shown.some((f) => f.chart.task === state.task);
      R.one(".of", section).textContent = own && task && content.tasks.length > 1 ? task.name : "";
    }
    const select = R.one("#task");
    if (select) select.value = String(state.task);
    const about = R.one("#about-task");
    if (about && task) {
      const settings = Object.entries(task.kwargs || {})
        .map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
      about.textContent = [task.id, ...settings, `horizon ${task.horizon}`, `${task.runs} runs`]
        .join(", ");
    }
  }

  /* ---- agents ---- */
  function buildAgents() {
    const list = R.one("#agent-list");
    agents.forEach((agent, index) => {
      const box = R.html("input", { type: "checkbox", "data-agent": index, on: {
        change: () => { state.off[box.checked ? "delete" : "add"](index); update(); } } });
      const only = () => {
        agents.forEach((_, k) => state.off[k === index ? "delete" : "add"](k));
        update();
      };
      const hover = (value) => () => R.highlight(value, R.one("#charts"));
      list.append(R.html("li", { "data-agent": index,
        on: { pointerenter: hover(index), pointerleave: hover(undefined) } },
      R.html("label", { title: agent.summary }, box, R.swatch(index),
        R.html("span", { class: "who" }, agent.label,
          agent.reference ? R.html("small", {}, " reference") : "")),
      R.html("button", { type: "button", class: "only", "aria-label": `Only ${agent.label}`,
        on: { click: only } }, "only")));
    });
    const listed = () => R.all("li:not([hidden])", list).map((li) => Number(li.dataset.agent));
    const bulk = (verb) => () => { listed().forEach((k) => state.off[verb](k)); update(); };
    R.one("#all").addEventListener("click", bulk("delete"));
    R.one("#none").addEventListener("click", bulk("add"));
    const filter = R.one("#filter");
    R.one("#agents").hidden = !agents.length;
    filter.parentNode.hidden = agents.length <= 12;
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      R.all("li", list).forEach((li, k) => {
        li.hidden = !agents[k].label.toLowerCase().includes(wanted);
      });
    });
  }

  function showAgents() {
    for (const box of R.all("#agent-list input")) box.checked = R.isOn(Number(box.dataset.agent));
    R.one("#count").textContent = `${agents.length - state.off.size} of ${agents.length}`;
    for (const table of R.all("figure.table")) {
      let off = 0;
      for (const row of R.all("tbody tr", table)) {
        row.hidden = row.dataset.agent !== "" && !R.isOn(Number(row.dataset.agent));
        if (row.hidden) off += 1;
      }
      R.one(".remark", table).textContent = off
        ? `${off} ${off === 1 ? "row is" : "rows are"} hidden: switched off in the agent list.` : "";
    }
  }

  /* ---- tables ---- */
  function sortKey(column, cell) {
    const value = Array.isArray(cell) ? cell[0] : cell;
    if (column.kind === "agent" && agents[value]) return agents[value].label;
    return value;
  }

  function compare(a, b, down) {
    const missing = (v) => v === null || v === undefined || v === "";
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    const order = typeof a === "number" && typeof b === "number" ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
    return down ? -order : order;
  }

  function showSort(figure) {
    const index = Number(figure.dataset.table);
    const table = content.tables[index];
    const sorted = state.sort.get(index);
    R.all("thead th", figure).forEach((th, k) => {
      if (sorted && sorted.column === k) {
        th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      } else th.removeAttribute("aria-sort");
    });
    const key = (row) => sorted &&
      sortKey(table.columns[sorted.column], table.rows[row.dataset.row].cells[sorted.column]);
    const rows = R.all("tbody tr", figure).map((row) => ({ row, key: key(row) }));
    rows.sort((a, b) => (sorted ? compare(a.key, b.key, sorted.down) : 0) ||
      a.row.dataset.row - b.row.dataset.row);
    R.one("tbody", figure).append(...rows.map(({ row }) => row));
  }

  function buildTables() {
    for (const figure of R.all("figure.table")) {
      const index = Number(figure.dataset.table);
      const columns = content.tables[index].columns;
      R.all("thead th", figure).forEach((th, column) => {
        const click = () => {
          const now = state.sort.get(index);
          // The first click puts the best on top, the second turns the order round.
          const down = now && now.column === column ? !now.down : columns[column].best === "high";
          state.sort.set(index, { column, down });
          showSort(figure);
          writeHash();
        };
        const button = R.html("button", { type: "button", on: { click } }, ...th.childNodes);
        th.replaceChildren(button);
      });
    }
  }

  /* ---- the address holds the view ---- */
  function writeHash() {
    const parts = [];
    if (state.task) parts.push(`task=${state.task}`);
    const on = agents.map((_, k) => k).filter((k) => R.isOn(k));
    if (on.length < state.off.size || (!on.length && agents.length)) parts.push(`on=${on.join(".")}`);
    else if (state.off.size) parts.push(`off=${[...state.off].sort((a, b) => a - b).join(".")}`);
    for (const [table, { column, down }] of state.sort) {
      parts.push(`sort=${table}.${column}.${down ? "down" : "up"}`);
    }
    const bare = location.href.split("#")[0];
    try {
      history.replaceState(null, "", parts.length ? `${bare}#${parts.join("&")}` : bare);
    } catch (error) {
      location.hash = parts.join("&");
    }
  }

  function readHash() {
    const text = location.hash.slice(1);
    if (text && !text.includes("=")) return;
    const numbers = (value) => value.split(".").filter((v) => v !== "").map(Number);
    state.task = 0;
    state.off.clear();
    state.sort.clear();
    for (const [name, value] of text.split("&").map((part) => part.split("="))) {
      if (name === "task" && content.tasks[Number(value)]) state.task = Number(value);
      if (name === "off") numbers(value).filter((k) => agents[k]).forEach((k) => state.off.add(k));
      if (name === "on") {
        const on = new Set(numbers(value));
        agents.forEach((_, k) => { if (!on.has(k)) state.off.add(k); });
      }
      if (name === "sort") {
        const [table, column, way] = value.split(".");
        const found = (content.tables || [])[table];
        if (found && found.columns[column]) {
          state.sort.set(Number(table), { column: Number(column), down: way === "down" });
        }
      }
    }
  }

  function render() {
    showAgents();
    showTask();
    R.redraw();
  }

  function update() {
    render();
    writeHash();
  }

  function restore() {
    readHash();
    R.all("figure.table").forEach(showSort);
    render();
  }

  R.start = () => {
    buildCharts();
    buildAgents();
    buildTables();
    const select = R.one("#task");
    (content.tasks || []).forEach((task, k) =>
      select.append(R.html("option", { value: k }, task.name)));
    select.closest(".pick").hidden = (content.tasks || []).length < 2;
    select.addEventListener("change", () => { state.task = Number(select.value); update(); });
    R.settle();
    restore();
    window.addEventListener("hashchange", restore);
  };
})(window.wgpReport);
