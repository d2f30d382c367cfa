"use strict";
(() => {
  const root = document.documentElement;

  // A view that is wider than the page is made narrower, long labels likewise.
  const fitted = (view, room) => {
    if (!view || typeof view !== "object") return view;
    for (const key of ["hconcat", "vconcat", "layer"]) {
      for (const part of view[key] || []) fitted(part, room);
    }
    if (view.hconcat && room < 700) {
      view.vconcat = view.hconcat;
      delete view.hconcat;
    }
    const axis = view.encoding && view.encoding.y && view.encoding.y.axis;
    if (axis && axis.labelLimit > room * 0.4) axis.labelLimit = Math.round(room * 0.4);
    const labels = axis && axis.labelLimit ? axis.labelLimit : 60;
    for (const part of view.layer || []) {
      const own = part.encoding && part.encoding.y && part.encoding.y.axis;
      if (own && own.labelLimit && room < 700) view.narrowed = own.labelLimit;
    }
    if (typeof view.width === "number") {
      view.width = Math.max(140, Math.min(view.width, room - (view.narrowed || labels) - 40));
    }
    delete view.narrowed;
    return view;
  };

  const draw = async (place) => {
    const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const source = document.getElementById(place.dataset.chart).textContent;
    try {
      await vegaEmbed(place, fitted(spec, place.clientWidth), {
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: place.dataset.chart,
        // Thousands of marks as elements of the page would make it slow.
        renderer: source.length > 200000 ? "canvas" : "svg",
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
    if (cell.dataset.v === "") return null;
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
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
