"use strict";
(() => {
  const { beside, fitted, inTheDark, stepped, unpacked, valuesOf, wide, widened, withFoldedNames } = specs;
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const panels = all(".panel");
  const choice = { rank: null, step: null };

  const room = () => (document.querySelector(".panel.open") || document.querySelector("main")).clientWidth;
  const isDark = () => root.dataset.theme === "dark";
  const state = () => [isDark(), choice.rank, choice.step, Math.round(room() / 40)].join();
  // A sheet of paper is wider than high: of many panels two stand side by side.
  const onPaper = (spec) => {
    const { facet, ...rest } = spec;
    const panels = (facet && facet.row && valuesOf(spec, facet.row.field).length) || 0;
    return root.classList.contains("printing") && panels > 5 ? { ...rest, facet: facet.row, columns: 2 } : spec;
  };
  const read = (place) => {
    const source = document.getElementById(place.dataset.chart).textContent;
    const told = {};
    const spec = onPaper(withFoldedNames(fitted(beside(unpacked(JSON.parse(source), choice, told), room()), room(), told)));
    place.told = told;
    return [isDark() ? inTheDark(spec) : spec, source.length];
  };
  const embed = (place, spec, size) =>
    vegaEmbed(place, spec, {
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: place.dataset.chart,
      logLevel: 1,
      // Thousands of marks as elements of the page would make it slow.
      renderer: size > 100000 ? "canvas" : "svg",
    });
  const draw = async (place) => {
    try {
      const [spec, size] = read(place);
      if (place.told.before && !place.told.after) {
        place.textContent = "No data for the selected rank and step.";
      } else {
        // What a plot leaves of the page is known once it is drawn; titles may need a second look.
        for (let pass = 0; pass < 3; pass++) {
          const { view } = await embed(place, JSON.parse(JSON.stringify(spec)), size);
          const first = place.querySelector("svg.marks, canvas");
          const left = room() - 4 - (parseFloat(first.style.width) || Number(first.getAttribute("width")));
          if (left <= 24 && left >= -6) break;
          const signals = view.getState({ signals: (name) => /(^|_)width$/.test(name), data: () => false }).signals;
          const plot = Math.max(1, ...Object.values(signals).filter(Number.isFinite));
          if (wide(spec)) widened(spec, left);
          else if (pass === 0) stepped(spec, Math.min(2.5, (plot + left) / plot));
          else break;
        }
        const picture = place.querySelector("svg.marks, canvas");
        picture.setAttribute("role", "img");
        picture.setAttribute("aria-label", place.dataset.label || "Chart");
        for (const part of picture.children) part.setAttribute("aria-hidden", "true");
        place.querySelector("summary")?.setAttribute("aria-label", "Save this chart");
      }
      place.dataset.drawn = "yes";
    } catch (error) {
      place.dataset.drawn = "failed";
      place.textContent = "This chart could not be drawn: " + error.message;
      console.error(error);
    }
    place.dataset.state = state();
  };

  let turn = 0;
  const drawIn = async (place) => {
    const mine = ++turn;
    root.dataset.ready = "no";
    for (const chart of all(".chart", place)) {
      if (chart.dataset.state !== state()) await draw(chart);
      if (mine !== turn) return;
      await new Promise((next) => setTimeout(next));
      if (mine !== turn) return;
    }
    for (const section of all("section", place)) { tellScope(section); tellPlaces(section); }
    for (const box of all(".table", place)) fitColumns(box);
    for (const box of all(SCROLLED, place)) tellEdges(box);
    root.dataset.ready = "yes";
  };

  // Numbers sort by their exact value, texts by their letters; what is unknown stays last.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.v === "" || cell.dataset.v === "nan") return null;
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    return cell.classList.contains("number") ? Number(cell.textContent) : cell.textContent;
  };
  const exactly = (cell) => {
    const row = cell.parentElement;
    const table = cell.closest("table");
    const name = (row.querySelector("th") || table.tHead.rows[0].cells[cell.cellIndex]).dataset.name || "";
    const unit = { _ns: " ns", tes: " bytes", pct: " %" }[name.slice(-3)] || "";
    return cell.dataset.v.replace(/^-?\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ",")) + unit;
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

  // Rows of a table: those with the words sought, of the rank and step chosen.
  const columnOf = (table, name) => [...(table.tHead ? table.tHead.rows[0].cells : [])].findIndex((cell) => cell.dataset.name === name);
  const barAbove = (box) => box.previousElementSibling?.matches(".find") ? box.previousElementSibling : null;
  const filterTable = (box) => {
    const table = box.querySelector("table");
    const sought = (barAbove(box)?.querySelector("input")?.value || "").toLowerCase();
    const wanted = ["rank", "step"].map((name) => [columnOf(table, name), choice[name]]).filter(([at, value]) => at >= 0 && value !== null);
    const rows = [...table.tBodies[0].rows];
    let left = 0;
    for (const row of rows) {
      const fits = (at, value) => { const own = valueOf(row, at); return own === null || own === value; };
      row.hidden = !(wanted.every(([at, value]) => fits(at, value)) && (!sought || row.textContent.toLowerCase().includes(sought)));
      left += row.hidden ? 0 : 1;
    }
    const said = barAbove(box)?.querySelector("output");
    if (said) said.value = left < rows.length ? `${left} of these ${rows.length} rows` : "";
  };
  const barOf = (box) => {
    if (barAbove(box)) return barAbove(box);
    const bar = document.createElement("div");
    bar.className = "find";
    box.before(bar);
    return bar;
  };
  const searchable = (box) => {
    if (box.querySelector("tbody").rows.length < 8 || box.querySelector(".runs")) return;
    barOf(box).innerHTML = '<input type="search" placeholder="Search these rows" aria-label="Search the rows of this table"><output></output>';
  };

  // Of a table wider than the page those columns stay that tell most and fit; a button shows all.
  const fitColumns = (box) => {
    if (!box.clientWidth) return;
    const table = box.querySelector("table");
    const heads = [...table.tHead.rows[0].cells];
    const known = box.dataset.room;
    if (known === String(box.clientWidth)) return;
    box.dataset.room = box.clientWidth;
    const few = box.classList.contains("few") || !known;
    box.classList.remove("few");
    const kept = new Set();
    let left = box.clientWidth;
    if (box.scrollWidth <= left + 1) left = Infinity;
    for (const head of [...heads].sort((a, b) => a.dataset.place - b.dataset.place)) {
      const isNumber = head.classList.contains("number");
      // A text behind the first two columns leaves room for a number behind it.
      if (head.offsetWidth + (isNumber || kept.size < 2 ? 0 : 75) <= left || kept.size < 2) {
        kept.add(head);
        left -= head.offsetWidth;
      } else if (isNumber) break;
    }
    const over = heads.map((head) => !kept.has(head));
    for (const row of table.rows) over.forEach((is, at) => row.cells[at].classList.toggle("over", is));
    let button = barAbove(box)?.querySelector(".columns");
    if (kept.size < heads.length && !button) {
      button = document.createElement("button");
      button.type = "button";
      button.className = "columns";
      barOf(box).append(button);
    }
    if (button) button.hidden = kept.size === heads.length;
    box.classList.toggle("few", few);
    nameColumns(box);
  };
  const nameColumns = (box) => {
    const button = barAbove(box)?.querySelector(".columns");
    if (!button) return;
    const heads = [...box.querySelectorAll("th")];
    const shown = heads.filter((head) => !head.classList.contains("over")).length;
    button.textContent = box.classList.contains("few") ? `All ${heads.length} columns` : `Only ${shown} columns`;
  };
  // What stands side by side on a wide page stands one above the other on a narrow one.
  const tellPlaces = (section) => {
    const notes = section.querySelector(":scope > .notes");
    if (!notes) return;
    notes.dataset.beside = notes.dataset.beside || notes.textContent;
    const isStacked = all(":scope > .chart", section).some((chart) => chart.told && chart.told.stacked);
    const beside = notes.dataset.beside;
    notes.textContent = isStacked ? beside.replace(/\bLeft:/g, "Above:").replace(/\bRight:/g, "Below:") : beside;
  };
  // What can be scrolled shows it at its edges.
  const SCROLLED = ".table, .upright";
  const tellEdges = (box) => {
    box.classList.toggle("below", box.scrollTop + box.clientHeight < box.scrollHeight - 2);
    box.classList.toggle("beyond", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  };
  const tellScope = (section) => {
    let line = section.querySelector(":scope > .scope");
    const of = { rank: "ranks", step: "steps" };
    const said = [];
    const say = (what, follows) => {
      const fixed = Object.keys(of).filter((name) => choice[name] !== null && !follows(name)).map((name) => of[name]);
      if (fixed.length) said.push(`${what}: of all ${fixed.join(" and ")}.`);
    };
    for (const chart of all(":scope > .chart", section)) if (chart.told) say("Chart", (name) => chart.told[name]);
    for (const table of all(":scope > .table table, :scope > .upright table, :scope > .rows table", section)) say("Table", (name) => columnOf(table, name) >= 0);
    if (!line) {
      line = document.createElement("p");
      line.className = "scope quiet";
      section.querySelector("h2, h3")?.after(line);
    }
    line.textContent = said.join(" ");
    line.hidden = !said.length;
  };

  // The first screen for a choice of rank and step, from the exact figures.
  const held = document.getElementById("figures");
  const figures = held && JSON.parse(held.textContent);
  // Three digits, of which zeros are some, as duration_text in text.py writes them.
  const time = (ns) => {
    const [size, unit] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"]].find(([size]) => Math.abs(ns) / size < 999.5) || [1e9, "s"];
    const number = Math.abs(ns) / size;
    const digits = (size === 1 && Number.isInteger(ns)) || number >= 99.95 ? 0 : number < 9.995 ? 2 : 1;
    const rounded = Math.floor(number * 10 ** digits + 0.5) / 10 ** digits;
    return `${ns < 0 ? "-" : ""}${rounded.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${unit}`;
  };
  // A number that does not fit its part of a bar is left to the key below.
  const lettered = (piece, text) => {
    piece.textContent = text;
    const range = document.createRange();
    range.selectNodeContents(piece);
    if (range.getBoundingClientRect().width + 8 > piece.clientWidth) piece.textContent = "";
  };
  const fitLetters = () => {
    for (const piece of all("[data-run] .step span")) lettered(piece, piece.title.replace(":", ""));
  };
  const stepBar = (box) => {
    const { columns, rows } = figures.steps;
    const at = Object.fromEntries(columns.map((name, place) => [name, place]));
    const fits = (row) => ["rank", "step"].every((name) => choice[name] === null || row[at[name]] === null || row[at[name]] === choice[name]);
    const of = rows.filter((row) => row[at.run] === box.dataset.run && fits(row));
    const mean = (name) => of.reduce((sum, row) => sum + row[at[name]], 0) / of.length;
    const step = mean("step_ns");
    const told = [];
    const pieces = all(".step [data-part]", box);
    const parts = pieces.map((piece) => (of.length && step ? mean(piece.dataset.part) : 0));
    // Shares of the recorded time, in tenths of a percent that add up to 100; less than half a tenth is 0.
    const isUnrecorded = pieces.map((piece) => piece.dataset.part.startsWith("unrecorded_"));
    const recorded = parts.reduce((sum, part, place) => sum + (isUnrecorded[place] ? 0 : part), 0);
    const tenths = parts.map((part, place) => (recorded && !isUnrecorded[place] ? (1000 * part) / recorded : 0));
    const rounded = tenths.map(Math.floor);
    const rest = Math.round(tenths.reduce((a, b) => a + b, 0)) - rounded.reduce((a, b) => a + b, 0);
    const order = tenths.map((_, place) => place).filter((place) => tenths[place] >= 0.5).sort((a, b) => rounded[a] - tenths[a] - (rounded[b] - tenths[b]));
    for (const place of order.slice(0, rest)) rounded[place]++;
    pieces.forEach((piece, place) => {
      const words = piece.title.split(":")[0];
      const text = `${words} ${time(parts[place])}`;
      piece.style.width = `${step ? (100 * parts[place]) / step : 0}%`;
      piece.title = `${words}: ${time(parts[place])}`;
      lettered(piece, text);
      const entry = box.querySelector(`.key [data-part="${piece.dataset.part}"]`);
      entry.hidden = !parts[place];
      const share = rounded[place] ? `${(rounded[place] / 10).toFixed(1)} %` : "below 0.1 %";
      entry.querySelector("span").textContent = isUnrecorded[place] ? time(parts[place]) : `${time(parts[place])}, ${share}`;
      if (parts[place]) told.push(text);
    });
    box.querySelector(".step").setAttribute("aria-label", told.join("; "));
    const whose = choice.rank === null ? "all ranks" : `rank ${choice.rank}`;
    const which = choice.step === null ? "all steps" : `step ${choice.step}`;
    const partly = parts.some((part, place) => part && isUnrecorded[place]) ? " Shares are of the recorded time." : "";
    const said = box.querySelector(".of");
    said.textContent = of.length
      ? `Mean of ${whose}, ${which}: ${time(step)}. ${said.dataset.note}${partly}`
      : `No step of ${whose}, ${which}.`;
  };

  const choose = () => {
    for (const box of all("[data-run]")) if (figures) stepBar(box);
    for (const box of all(".table")) filterTable(box);
    drawIn(document.querySelector(".panel.open"));
  };
  const picker = (form) => {
    const { columns, rows } = figures.steps;
    const options = (name) => [...new Set(rows.map((row) => row[columns.indexOf(name)]))].filter((v) => v !== null).sort((a, b) => a - b);
    for (const name of ["rank", "step"]) {
      const values = options(name);
      if (values.length < 2) continue;
      const label = document.createElement("label");
      const select = document.createElement("select");
      select.name = name;
      select.append(new Option(`all ${values.length}`, ""), ...values.map((value) => new Option(value, value)));
      select.onchange = () => { choice[name] = select.value === "" ? null : Number(select.value); choose(); };
      label.append(`${name} `, select);
      form.append(label);
    }
    const theme = document.createElement("button");
    theme.type = "button";
    theme.className = "theme";
    const named = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
    theme.onclick = () => { setTheme(isDark() ? "light" : "dark"); named(); drawIn(document.querySelector(".panel.open")); };
    named();
    form.append(theme);
    form.hidden = false;
  };

  const setTheme = (name) => { root.dataset.theme = name; };
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches && panels.length ? "dark" : "light");

  const show = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)) || "overview");
    const panel = (target && target.closest(".panel")) || panels[0];
    for (const one of panels) one.classList.toggle("open", one === panel);
    const key = panel.querySelector("[id]").id;
    if (key === "overview") fitLetters();
    for (const link of all("nav a")) {
      if (link.hash === `#${key}`) link.setAttribute("aria-current", "page");
      else if (target && link.hash === `#${target.id}`) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
      // The strip of a narrow page moves, and the page does not.
      if (link.hash === `#${key}`) {
        const [strip, tab] = [link.closest("nav"), link.getBoundingClientRect()];
        strip.scrollLeft += tab.left - strip.getBoundingClientRect().left - (strip.clientWidth - tab.width) / 2;
      }
    }
    const bring = () => {
      if (target && target.closest(".panel") && target.id !== key) target.scrollIntoView();
      else scrollTo(0, 0);
    };
    for (let at = target; at; at = at.parentElement) if (at.matches("details")) at.open = true;
    bring();
    // Charts above it have no height before they are drawn.
    drawIn(panel).then(bring);
  };

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (target.matches("th button")) sortBy(target);
    if (target.matches("button.columns")) {
      const box = target.parentElement.nextElementSibling;
      box.classList.toggle("few");
      nameColumns(box);
      tellEdges(box);
    }
    if (target.matches("button.copy")) {
      const source = target.parentElement.querySelector("pre");
      // Where a page may not write to the clipboard, the text is chosen for the keys that may.
      const chosen = () => { getSelection().selectAllChildren(source); target.textContent = "Press Ctrl + C"; };
      const written = navigator.clipboard?.writeText(source.textContent);
      written ? written.then(() => { target.textContent = "Copied"; }, chosen) : chosen();
    }
  });
  document.addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    for (const box of all(".table", event.target)) fitColumns(box);
    for (const box of all(SCROLLED, event.target)) tellEdges(box);
  }, true);
  document.addEventListener("scroll", (event) => {
    if (event.target.matches?.(SCROLLED)) tellEdges(event.target);
  }, true);
  document.addEventListener("input", (event) => {
    if (!event.target.matches(".find input")) return;
    const box = event.target.parentElement.nextElementSibling;
    filterTable(box);
    tellEdges(box);
  });
  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest?.("td");
    if (!cell || cell.title) return;
    if (cell.classList.contains("long")) cell.title = cell.textContent;
    if (cell.dataset.v) cell.title = exactly(cell);
  });

  // Paper is white and shows the first section of each topic. What charts wait for is done when this returns: they
  // load nothing.
  const ON_PAPER = ".panel > section:first-of-type";
  addEventListener("beforeprint", () => {
    root.dataset.screen = root.dataset.theme;
    setTheme("light");
    root.classList.add("printing");
    for (const rows of all(`${ON_PAPER} details.rows:not([open]), #findings > details:not(.sql, [open])`)) { rows.open = true; rows.dataset.closed = "yes"; }
    turn++;
    for (const box of all(`${ON_PAPER} .table`)) fitColumns(box);
    for (const place of all(`${ON_PAPER} .chart`)) draw(place);
  });
  addEventListener("afterprint", () => {
    setTheme(root.dataset.screen);
    root.classList.remove("printing");
    for (const rows of all("details[data-closed]")) { rows.open = false; delete rows.dataset.closed; }
    drawIn(document.querySelector(".panel.open"));
  });

  if (panels.length) {
    root.classList.add("js");
    for (const box of all(".table")) searchable(box);
    if (figures) picker(document.querySelector(".pick"));
    addEventListener("hashchange", show);
    show();
  } else {
    drawIn(document);
  }
  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      fitLetters();
      drawIn(document.querySelector(".panel.open") || document);
    }, 200);
  });
})();
