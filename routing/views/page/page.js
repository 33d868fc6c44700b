// The filter: tables, numbers and pictures are made anew of the cells that it leaves. The page is whole without it.
// Names come from the data: they are set as text, never as markup.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const { names, others, advice, blanks, grids, series } = page;
  const rowsOf = (table) =>
    table.rows.map((values) => {
      const row = Object.fromEntries(table.columns.map((column, place) => [column, values[place]]));
      return { ...row, outcome: page.words[row.outcome] };
    });
  const moments = rowsOf(page.moments).map((row) => ({ ...row, at: page.start + row.at * page.series }));
  const all = { cells: rowsOf(page.cells), moments };
  const form = document.getElementById("filter");
  const views = new Map();

  // How values read: as in grids.py and page.py.
  const number = (value) => value.toLocaleString("en-US");
  // The years 1 and 9999 stand for all before and after, as in page_tables.py.
  const [FIRST, LAST] = [-62135596800, 253402300799];
  const time = (seconds) =>
    new Date(Math.min(Math.max(seconds, FIRST), LAST) * 1000).toISOString().slice(0, 16).replace("T", " ");
  const share = (part, whole) => `${(whole ? (100 * part) / whole : 0).toFixed(1)} %`;
  const named = (column, value) => (value < 0 ? (blanks[column] ?? "") : names[value]);

  function age(seconds) {
    const parts = [];
    let rest = Math.abs(seconds);
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
      const count = Math.floor(rest / size);
      rest %= size;
      if (count || parts.length || unit === "s") parts.push([count, unit]);
    }
    const told = parts.slice(0, 2).filter(([count]) => count || parts.length === 1);
    return (seconds < 0 ? "-" : "") + told.map(([count, unit]) => `${count} ${unit}`).join(" ");
  }

  // Messages by key: how many, by outcome, and when the first was enqueued.
  function group(rows, by) {
    const found = new Map();
    for (const row of rows) {
      const key = by.map((column) => row[column]);
      const text = key.join(" ");
      const one = found.get(text) ?? { key, messages: 0, oldest: Infinity, outcomes: {} };
      one.messages += row.messages;
      one.outcomes[row.outcome] = (one.outcomes[row.outcome] ?? 0) + row.messages;
      one.oldest = Math.min(one.oldest, row.oldest ?? Infinity);
      found.set(text, one);
    }
    return [...found.values()];
  }

  function byKey(one, other) {
    for (let place = 0; place < one.key.length; place++) {
      if (one.key[place] !== other.key[place]) return one.key[place] < other.key[place] ? -1 : 1;
    }
    return 0;
  }
  const mostFirst = (one, other) => other.messages - one.messages || byKey(one, other);
  const sum = (rows) => rows.reduce((messages, row) => messages + row.messages, 0);

  function read(grid, one, column) {
    const place = grid.by.indexOf(column);
    const reason = one.key[grid.by.indexOf("reason")];
    switch (column) {
      case "messages": return number(one.messages);
      case "at": return time(one.key[place]);
      case "oldest": return time(one.oldest);
      case "age": return age(page.made - one.oldest);
      case "outcome": return one.key[place];
      case "numbers": return advice[reason]?.[0] ?? "";
      case "advice": return advice[reason]?.[1] ?? "";
      default: return place < 0 ? number(one.outcomes[column] ?? 0) : named(column, one.key[place]);
    }
  }

  function element(tag, text, kind) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  function line(grid, one) {
    const row = document.createElement("tr");
    grid.columns.forEach(([column, kind], place) => {
      const text = read(grid, one, column);
      const isOutcome = kind === "outcome";
      const made = element(place ? "td" : "th", isOutcome ? "" : text, isOutcome ? "" : kind);
      if (!place) made.scope = "row";
      if (isOutcome) made.append(element("span", text, `outcome ${text}`));
      row.append(made);
    });
    return row;
  }

  function fill(grid, rows) {
    const groups = group(rows.filter((row) => grid.only.includes(row.outcome)), grid.by);
    groups.sort(grid.in_time ? byKey : mostFirst);
    const lines = groups.slice(0, page.shown).map((one) => line(grid, one));
    if (!lines.length) {
      const none = element("td", page.nothing);
      none.colSpan = grid.columns.length;
      lines.push(document.createElement("tr"));
      lines[0].append(none);
    }
    document.getElementById(grid.id).tBodies[0].replaceChildren(...lines);
    const more = document.getElementById(`${grid.id}-more`);
    more.hidden = groups.length <= page.shown;
    more.textContent = `and ${number(groups.length - page.shown)} more`;
  }

  function count(cells) {
    const whole = sum(cells);
    for (const tile of document.querySelectorAll("[data-outcome]")) {
      const part = sum(cells.filter((cell) => cell.outcome === tile.dataset.outcome));
      tile.querySelector("strong").textContent = number(part);
      tile.querySelector(".share").textContent = share(part, whole);
      tile.querySelector(".part").setAttribute("width", whole ? (100 * part) / whole : 0);
    }
    document.getElementById("filtered").textContent = `${number(whole)} of ${number(sum(all.cells))} messages`;
  }

  // Services with few messages are not told apart over time.
  function admit({ cells, moments }) {
    const place = document.getElementById("not-over-time");
    if (!place) return;
    const missing = sum(cells) - sum(moments);
    place.hidden = missing === 0;
    place.textContent = `${number(missing)} of these messages are of services that are not told apart over time.`;
  }

  // The rows of pictures, as pictures/ describes them: the largest in lanes of their own, the others in one.
  function lanes(rows, column, most, what) {
    const groups = group(rows, [column]).sort(mostFirst);
    const folded = others[column];
    const own = groups.filter((one) => one.key[0] >= 0 && one.key[0] !== folded?.name);
    const kept = own.slice(0, what && !folded && own.length === most + 1 ? own.length : most);
    const place = new Map(kept.map((one, at) => [one.key[0], at]));
    const labels = kept.map((one) => named(column, one.key[0]));
    const isFolded = groups.some((one) => one.key[0] === folded?.name);
    const left = own.length - kept.length + (isFolded ? folded.count : 0);
    if (what && left) labels.push(`${number(left)} ${what}`);
    return { labels, own: kept.length, of: (row) => place.get(row[column]) ?? kept.length };
  }

  function laid(rows, found, column, more) {
    const placed = rows.map((row) => ({ ...row, place: found.of(row) }));
    const groups = group(placed.filter((row) => row.place < found.labels.length), ["place", more ?? "place"]);
    return groups.sort(byKey).map((one) => {
      const place = one.key[0];
      return { place, [column]: found.labels[place], others: place >= found.own, messages: one.messages, one };
    });
  }

  const step = (at) => ({ at: at * 1000, until: (at + series) * 1000 });
  const delayed = (rows) => rows.filter((row) => row.outcome === "DELAYED");
  const pictures = {
    "times-picture": ({ moments }) => {
      const groups = group(moments, ["at", "outcome"]).sort(byKey);
      return { rows: groups.map(({ key, messages }) => ({ ...step(key[0]), outcome: key[1], messages })) };
    },
    "delays-picture": ({ moments }) => {
      const found = lanes(delayed(moments), "service", page.lanes.strips);
      const rows = laid(delayed(moments), found, "service", "at");
      return { rows: rows.map(({ one, ...row }) => ({ ...row, ...step(one.key[1]) })) };
    },
    "instances-picture": ({ cells }) => {
      const found = lanes(cells, "instance", page.lanes.instances, "other instances");
      const rows = laid(cells, found, "instance", "outcome");
      return { rows: rows.map(({ one, ...row }) => ({ ...row, outcome: one.key[1] })) };
    },
    "reasons-picture": ({ cells }) => {
      const groups = group(cells.filter((cell) => page.stuck.includes(cell.outcome)), ["outcome", "reason"]);
      const row = ({ key: [outcome, reason], messages }, place) =>
        ({ place, reason: named("reason", reason), others: false, outcome, messages });
      return { rows: groups.sort(mostFirst).map(row) };
    },
    "stuck-picture": ({ cells }) => {
      const found = lanes(delayed(cells), "service", page.lanes.services, "other services");
      const rows = laid(delayed(cells), found, "service");
      return { rows: rows.map(({ one, ...row }) => ({ ...row, oldest: one.oldest * 1000 })) };
    },
    "estate-picture": ({ cells }) => {
      const groups = group(cells, ["source", "target", "outcome"]).sort(mostFirst);
      const rows = groups.map(({ key: [source, target, outcome], messages }) =>
        target < 0
          ? { node: page.nodes[source], outcome, messages }
          : { source: page.nodes[source], target: page.nodes[target], outcome, messages });
      return { estate_edges: rows.filter((row) => row.source), estate_stops: rows.filter((row) => row.node) };
    },
  };

  function update() {
    const asked = new FormData(form);
    const wanted = ["instance", "service", "outcome"].filter((column) => asked.get(column) !== "");
    const isLeft = (row) => wanted.every((column) => String(row[column]) === asked.get(column));
    const left = { cells: all.cells.filter(isLeft), moments: all.moments.filter(isLeft) };
    for (const grid of grids) fill(grid, left[grid.source]);
    count(left.cells);
    admit(left);
    for (const [id, view] of views) {
      for (const [data, rows] of Object.entries(pictures[id](left))) view.data(data, rows);
      view.resize().runAsync();
    }
  }

  function offer(column, every, values) {
    const options = values.map((value) => new Option(named(column, value), value));
    form.elements[column].replaceChildren(new Option(every, ""), ...options);
  }

  function start() {
    const seen = (column) => [...new Set(all.cells.map((cell) => cell[column]))].sort((one, other) => one - other);
    offer("instance", "all instances", seen("instance"));
    offer("service", "all services", seen("service"));
    const outcomes = page.outcomes.map((word) => new Option(word, word));
    form.elements.outcome.replaceChildren(new Option("all outcomes", ""), ...outcomes);
    form.hidden = false;
    form.addEventListener("change", update);
    form.addEventListener("reset", () => setTimeout(update));
    form.addEventListener("submit", (event) => event.preventDefault());
    update();
  }

  async function draw(id, spec, rows) {
    const figure = document.getElementById(id);
    figure.hidden = false;
    const view = await window.draw(figure.firstElementChild, spec);
    return rows ? view.data("rows", rows).resize().runAsync() : view;
  }

  async function drawAll() {
    for (const id of Object.keys(pictures)) {
      if (page.pictures[id]) views.set(id, await draw(id, page.pictures[id]));
    }
    update();
    for (const [id, rows] of Object.entries(page.balances)) await draw(id, page.pictures.balance, rows);
  }

  // On paper there is nothing to unfold.
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  start();
  drawAll();
})();
