// Sorts tables, and shows what a filter leaves: it adds up the cells from which Python made the same rows.
"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("filter");
  const number = (value) => value.toLocaleString("en-US");
  const share = (part, whole) => `${(whole ? (100 * part) / whole : 0).toFixed(1)} %`;
  const sum = (cells) => cells.reduce((messages, cell) => messages + cell[3], 0);
  const DIGITS = /^[-+]?[\d,]+(\.\d+)?$/;

  // A table with its rows in the order in which Python wrote them, which ties keep.
  function read(table) {
    const body = table.tBodies[0];
    const rows = [...body.rows].filter((row) => !row.classList.contains("nothing"));
    const heads = [...table.tHead.rows[0].cells];
    const sorted = heads.findIndex((head) => head.ariaSort);
    return {
      body, rows, heads, limit: Number(table.dataset.limit), more: document.getElementById(`${table.id}-more`),
      nothing: body.querySelector(".nothing"), left: null, unlisted: 0,
      order: { column: sorted, down: sorted >= 0 && heads[sorted].ariaSort === "descending" },
      words: heads.map((head) => head.textContent),
    };
  }

  function value(row, column) {
    const text = row.cells[column].textContent;
    return DIGITS.test(text) ? Number(text.replaceAll(",", "")) : text;
  }

  function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  // Put the rows in order, and show the first of those that are left.
  function show(table) {
    const { column, down } = table.order;
    let rows = table.rows;
    if (column >= 0) {
      const keyed = rows.map((row, place) => ({ row, place, key: value(row, column) }));
      keyed.sort((one, other) => (down ? -1 : 1) * compare(one.key, other.key) || one.place - other.place);
      rows = keyed.map(({ row }) => row);
    }
    table.body.append(...rows, table.nothing);
    const left = rows.filter((row) => table.left === null || table.left.has(row));
    const shown = new Set(left.slice(0, table.limit));
    for (const row of rows) row.hidden = !shown.has(row);
    table.nothing.hidden = left.length > 0;
    const more = left.length - shown.size + table.unlisted;
    table.more.hidden = more === 0;
    table.more.textContent = `and ${number(more)} more`;
  }

  function sort(table, column) {
    const isSame = table.order.column === column;
    const isNumber = table.heads[column].classList.contains("number");
    table.order = { column, down: isSame ? !table.order.down : isNumber };
    table.heads.forEach((head, place) => {
      head.ariaSort = place === column ? (table.order.down ? "descending" : "ascending") : null;
    });
    show(table);
  }

  // Add up the cells by the row that each of them has in a table.
  function fill(table, cells, place) {
    const sums = new Map();
    for (const cell of cells) {
      const row = table.rows[cell[place]];
      if (!row) continue;
      const counts = sums.get(row) ?? { Messages: 0 };
      const ending = page.endings[cell[2]];
      counts.Messages += cell[3];
      counts[ending] = (counts[ending] ?? 0) + cell[3];
      sums.set(row, counts);
    }
    table.left = new Set(sums.keys());
    const columns = table.words.map((word, at) => [word, at])
      .filter(([word]) => word === "Messages" || page.endings.includes(word));
    for (const [row, counts] of sums) {
      for (const [word, at] of columns) row.cells[at].textContent = number(counts[word] ?? 0);
    }
    show(table);
  }

  function count(cells, whole) {
    const messages = sum(cells);
    for (const tile of document.querySelectorAll("[data-outcome]")) {
      const part = sum(cells.filter((cell) => page.endings[cell[2]] === tile.dataset.outcome));
      tile.querySelector("strong").textContent = number(part);
      tile.querySelector(".share").textContent = share(part, messages);
      tile.querySelector(".part").setAttribute("width", messages ? (100 * part) / messages : 0);
    }
    document.getElementById("filtered").textContent = `${number(messages)} of ${number(sum(whole))} messages`;
  }

  const tables = new Map([...document.querySelectorAll("table[id]")].map((table) => [table.id, read(table)]));

  function update() {
    const asked = new FormData(form);
    const wanted = ["instance", "service", "outcome"].map((name) => asked.get(name));
    const isSet = wanted.some((text) => text !== "");
    const numbers = [wanted[0], wanted[1], wanted[2] && page.endings.indexOf(wanted[2])];
    const isLeft = (cell) => wanted.every((text, place) => text === "" || cell[place] === Number(numbers[place]));
    const left = {};
    for (const kind of ["cells", "moments"]) {
      left[kind] = page[kind].rows.filter(isLeft);
      page[kind].tables.forEach((name, place) => fill(tables.get(name), left[kind], 4 + place));
    }
    count(left.cells, page.cells.rows);
    const few = document.getElementById("not-over-time");
    if (few) {
      const missing = sum(left.cells) - sum(left.moments);
      few.hidden = missing === 0;
      few.textContent = `${number(missing)} of these messages are to services that are not told apart over time.`;
    }
    for (const figure of document.querySelectorAll("#filtered-sections figure")) figure.hidden = isSet;
    document.getElementById("not-drawn").hidden = !isSet;
    if (isSet) for (const folded of document.querySelectorAll("details.numbers")) folded.open = true;
  }

  function start() {
    for (const table of tables.values()) {
      // Rows that Python only counted stay counted.
      const counted = table.more.hidden ? 0 : Number(table.more.textContent.replace(/\D/g, ""));
      table.unlisted = counted - table.rows.filter((row) => row.hidden).length;
      table.heads.forEach((head, column) => {
        const button = head.querySelector("button");
        button.disabled = false;
        button.title = "Sort by this column";
        button.addEventListener("click", () => sort(table, column));
      });
    }
    form.hidden = false;
    form.addEventListener("change", update);
    form.addEventListener("reset", () => setTimeout(update));
    form.addEventListener("submit", (event) => event.preventDefault());
    update();
  }
  start();
})();
