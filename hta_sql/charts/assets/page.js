"use strict";
(() => {
  const root = document.documentElement;

  // On a narrow page, panels stand below each other and labels, titles and legends take less room.
  const narrowLabels = (axis, room) => {
    for (const key of ["labelLimit", "minExtent"]) {
      if (axis && axis[key]) axis[key] = Math.min(axis[key], Math.round(room * 0.4));
    }
    return (axis && axis.labelLimit) || 50;
  };
  const wrapped = (lines, characters) => {
    const broken = [""];
    for (const word of lines.join(" ").split(" ")) {
      const last = broken[broken.length - 1];
      if (last && last.length + word.length >= characters) broken.push(word);
      else broken[broken.length - 1] = last ? last + " " + word : word;
    }
    return broken;
  };
  const stacked = (view) => {
    const first = (part) => part.encoding || ((part.layer || [])[0] || {}).encoding || {};
    const y = first(view.hconcat[0]).y;
    for (const panel of view.hconcat.slice(1)) {
      for (const part of panel.layer || [panel]) {
        if (y && part.encoding && part.encoding.y && part.encoding.y.axis === null) {
          part.encoding.y = { ...part.encoding.y, axis: y.axis, title: y.title };
        }
      }
    }
    view.vconcat = view.hconcat;
    delete view.hconcat;
  };
  const fitted = (view, room) => {
    const narrow = room < 700;
    if (narrow && view.hconcat) stacked(view);
    const parts = ["hconcat", "vconcat", "layer"].flatMap((key) => view[key] || []);
    for (const part of parts) fitted(part, room);
    if (!narrow) return view;
    const encodings = [view, ...parts].map((part) => part.encoding || {});
    const labels = Math.max(50, ...encodings.map((e) => narrowLabels(e.y && e.y.axis, room)));
    for (const { color } of encodings) {
      if (color && color.legend !== null) {
        color.legend = { ...color.legend, orient: "bottom", direction: "vertical", columns: 1, titleOrient: "top" };
      }
    }
    if (typeof view.width === "number") view.width = Math.min(view.width, room - labels - 50);
    if (view.title && view.title.text) {
      view.title.text = wrapped([view.title.text].flat(), Math.floor(room / 10));
      if (view.title.subtitle) {
        view.title.subtitle = wrapped([view.title.subtitle].flat(), Math.floor(room / 7.8));
      }
    }
    return view;
  };

  // Rows are written as lists, with the names of their columns once.
  const unpacked = (spec) => {
    for (const [key, { columns, rows }] of Object.entries(spec.datasets)) {
      spec.datasets[key] = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
    }
    return spec;
  };

  const draw = async (place) => {
    const source = document.getElementById(place.dataset.chart).textContent;
    try {
      await vegaEmbed(place, fitted(unpacked(JSON.parse(source)), place.clientWidth), {
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: place.dataset.chart,
        // Thousands of marks as elements of the page would make it slow.
        logLevel: 1,
        renderer: source.length > 100000 ? "canvas" : "svg",
      });
      place.dataset.drawn = "yes";
    } catch (error) {
      place.dataset.drawn = "failed";
      place.textContent = "This chart could not be drawn: " + error.message;
      console.error(error);
    }
  };

  const drawAll = async () => {
    for (const place of document.querySelectorAll(".chart")) {
      await draw(place);
      await new Promise((next) => setTimeout(next));
    }
    root.dataset.ready = "yes";
  };

  // Numbers sort by their exact value, texts by their letters; what is unknown stays last.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.v === "" || cell.dataset.v === "nan") return null;
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    return cell.classList.contains("number") ? Number(cell.textContent) : cell.textContent;
  };
  const compare = (a, b) =>
    typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
  const sortBy = (button) => {
    const header = button.closest("th");
    const table = header.closest("table");
    const was = header.getAttribute("aria-sort");
    const isNumber = header.classList.contains("number");
    const down = was ? was === "ascending" : isNumber;
    const known = (a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0]));
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, header.cellIndex), row]);
    rows.sort((a, b) => (a[0] === null ? 1 : 0) - (b[0] === null ? 1 : 0) || (a[0] === null ? 0 : known(a, b)));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...rows.map(([, row]) => row));
  };

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (target.matches("th button")) sortBy(target);
    if (target.matches("button.copy")) {
      const text = target.parentElement.querySelector("pre").textContent;
      navigator.clipboard?.writeText(text).then(() => { target.textContent = "Copied"; }, () => {});
    }
  });

  drawAll();
})();
