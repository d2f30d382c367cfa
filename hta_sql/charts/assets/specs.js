"use strict";
// What a page makes of a chart before it is drawn: in the dark, on little room, of a chosen rank or step.
const specs = (() => {
  // What colors mean stays; ink, paper and what is too dark to be seen on black change.
  const NIGHT = {
    white: "#11151a", black: "#e8ecf0", "#000000": "#f4f6f8", "#333333": "#c8d0d8", "#555555": "#a3adb8",
    "#999999": "#5b6570", "#e8e8e8": "#2f3842", "#1b1b1b": "#e8ecf0", "#882255": "#d1669a",
    "#c4cacf": "#4a545e", "#d5dadf": "#46515d", "#f3f5f7": "#1f2831", "#e7c8d3": "#7a2f55",
  };
  const recolored = (value) => {
    if (typeof value === "string") return NIGHT[value.toLowerCase()] || value;
    if (Array.isArray(value)) return value.map(recolored);
    if (!value || typeof value !== "object") return value;
    const range = value.type === "quantitative" && value.scale && value.scale.range;
    // What is much stands out: a ramp begins at the paper. One with a middle has it there.
    if (Array.isArray(range) && range.length === 3 && (value.scale.domain || []).length !== 3) {
      return { ...value, scale: { ...value.scale, range: [...range].reverse() } };
    }
    if (value.condition && value.condition.value === "white") return value; // what is written on a bar
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, k === "datasets" ? v : recolored(v)]));
  };
  const inTheDark = (spec) => {
    const dark = recolored(spec);
    const [ink, quiet] = ["#e8ecf0", "#a3adb8"];
    const config = { ...dark.config, background: null };
    config.axis = { ...config.axis, labelColor: ink, titleColor: ink };
    config.legend = { ...config.legend, labelColor: ink, titleColor: ink, symbolBaseFillColor: quiet, symbolBaseStrokeColor: quiet };
    config.title = { ...config.title, color: ink, subtitleColor: quiet };
    config.header = { ...config.header, labelColor: ink, titleColor: ink };
    config.text = { fill: ink, ...config.text };
    return { ...dark, background: null, config };
  };

  // Names of bars are folded to the room that is left, in letters as they are drawn, and stay different: Vega would
  // cut off their ends, in which they differ.
  const TAILS = [0.5, 0.3, 0.15, 0, 0.7, 0.85];
  const folding = (limit, font) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = font;
    const fits = (text) => pen.measureText(text).width < limit;
    return (text, tail, behind = "") => {
      if (fits(text + behind)) return text + behind;
      const letters = [...text];
      let cut = behind;
      for (let low = 0, high = letters.length - 1; low <= high; ) {
        const kept = (low + high) >> 1;
        const end = Math.floor(kept * tail);
        const tried = letters.slice(0, kept - end).join("") + "…" + letters.slice(letters.length - end).join("") + behind;
        if (fits(tried)) [cut, low] = [tried, kept + 1];
        else high = kept - 1;
      }
      return cut;
    };
  };
  const foldingTo = (limit, { config = {} }) => folding(limit - 4, `${(config.axis || {}).labelFontSize || 11}px ${config.font || "sans-serif"}`);
  const folded = (names, fold) => {
    const known = new Map();
    const taken = new Set();
    const settle = (name, text) => { known.set(name, text); taken.add(text); };
    for (const tail of TAILS) {
      const tried = names.filter((name) => !known.has(name)).map((name) => [name, fold(name, tail)]);
      const times = new Map();
      for (const [, text] of tried) times.set(text, (times.get(text) || 0) + 1);
      for (const [name, text] of tried) if (times.get(text) === 1 && !taken.has(text)) settle(name, text);
    }
    for (const name of names.filter((name) => !known.has(name))) {
      let number = 1;
      while (taken.has(fold(name, 0.5, ` (${number})`))) number++;
      settle(name, fold(name, 0.5, ` (${number})`));
    }
    return known;
  };
  const named = (view) => [
    ...(view.encoding && view.encoding.y && view.encoding.y.field === "short" ? [view.encoding.y] : []),
    ...["hconcat", "vconcat", "concat", "layer"].flatMap((key) => (view[key] || []).flatMap(named)),
  ];
  const withFoldedNames = (spec) => {
    const axes = named(spec);
    const limits = axes.map((y) => y.axis && y.axis.labelLimit).filter(Boolean);
    if (!limits.length) return spec;
    const fold = foldingTo(Math.min(...limits), spec);
    const rows = Object.values(spec.datasets).flat().filter((row) => row.short);
    const known = folded([...new Set(rows.map((row) => row.short))], fold);
    for (const row of rows) row.short = known.get(row.short);
    for (const y of axes) if (Array.isArray(y.sort)) y.sort = y.sort.map((name) => known.get(name) || name);
    return spec;
  };
  const valuesOf = (spec, field) => {
    const values = Object.values(spec.datasets).flat().map((row) => row[field]);
    return [...new Set(values)].filter((value) => typeof value === "string");
  };
  // On a narrow page, panels stand below each other and labels, titles and legends take less room.
  const narrowLabels = ({ axis, field } = {}, room, spec) => {
    const most = Math.round(room * (room < 700 ? 0.45 : 0.5));
    const is = axis && axis.labelLimit > most;
    for (const key of ["labelLimit", "minExtent"]) {
      if (axis && axis[key]) axis[key] = Math.min(axis[key], most);
    }
    const names = is && field && field !== "short" && !axis.labelExpr ? valuesOf(spec, field) : [];
    const short = folded(names, foldingTo(most, spec));
    const cut = names.filter((name) => short.get(name) !== name);
    if (cut.length) {
      // Names are values of the chart, never words of its expressions.
      spec.params = spec.params || [];
      const known = spec.params.find(({ value }) => JSON.stringify(value) === JSON.stringify(cut));
      const key = known ? known.name : `names${spec.params.length}`;
      if (!known) spec.params.push({ name: key, value: cut }, { name: `${key}_cut`, value: cut.map((name) => short.get(name)) });
      axis.labelExpr = `indexof(${key}, datum.label) < 0 ? datum.label : ${key}_cut[indexof(${key}, datum.label)]`;
    }
    return (axis && axis.labelLimit) || 50;
  };
  const wrapped = (lines, characters) => {
    const broken = [""];
    const words = lines.join(" ").split(" ").flatMap((word) => word.match(new RegExp(`.{1,${characters}}`, "gu")) || []);
    for (const word of words) {
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
    // Keys below panels take room now.
    for (const key of ["hconcat", "bounds", "spacing"]) delete view[key];
  };
  // Panels of two runs stand side by side where the page is wide enough, with less room for labels.
  const runOf = (part) => {
    const title = part.title && (part.title.text || part.title);
    const found = /(?:^|, )run ([^:]+)/i.exec([title].flat().join(" "));
    return found && found[1];
  };
  const relabeled = (part, room, spec) => {
    const y = part.encoding && part.encoding.y;
    if (y && y.axis) narrowLabels(y, room, spec);
    for (const key of ["hconcat", "vconcat", "concat", "layer"]) for (const inner of part[key] || []) relabeled(inner, room, spec);
  };
  const beside = (view, room) => {
    const panels = view.vconcat || [];
    const runs = [...new Set(panels.map(runOf))];
    if (room < 900 || runs.length !== 2 || runs.includes(null)) return view;
    view.hconcat = runs.map((run) => ({ vconcat: panels.filter((part) => runOf(part) === run), resolve: view.resolve || {} }));
    delete view.vconcat;
    for (const half of view.hconcat) relabeled(half, room / 2, view);
    return view;
  };
  const fitted = (view, room, told, spec = view) => {
    const narrow = room < 700;
    if (narrow && view.hconcat) { stacked(view); told.stacked = true; }
    const parts = ["hconcat", "vconcat", "layer"].flatMap((key) => view[key] || []);
    for (const part of parts) fitted(part, room, told, spec);
    const encodings = [view, ...parts].map((part) => part.encoding || {});
    const labels = Math.max(50, ...encodings.map(({ y }) => narrowLabels(y, room, spec)));
    if (!narrow) return view;
    for (const channel of encodings.flatMap(({ color, size }) => [color, size])) {
      if (channel && channel.legend !== null) {
        channel.legend = { ...channel.legend, orient: "bottom", direction: "vertical", columns: 1, titleOrient: "top", labelLimit: room - 40 };
      }
    }
    // Names beside a plot would leave it no room.
    if (view.mark && view.mark.clip === false) Object.assign(view.mark, { align: "right", dx: -2, dy: -8 });
    if (typeof view.width === "number") view.width = Math.min(view.width, room - labels - 50);
    if (view.title && view.title.text) {
      view.title.text = wrapped([view.title.text].flat(), Math.floor(room / 10));
      if (view.title.subtitle) {
        view.title.subtitle = wrapped([view.title.subtitle].flat(), Math.floor(room / 7.8));
      }
    }
    return view;
  };

  // Plots get what is left of the page: of panels side by side, each its share. Those that are as wide as
  // their bars get wider bars.
  const wide = (part) => {
    if (typeof part.width === "number") return part.width;
    if (part.hconcat) return part.hconcat.reduce((sum, inner) => sum + wide(inner), 0);
    if (part.concat) return wide(part.concat[0]) * (part.columns || part.concat.length);
    const inner = part.spec || (part.layer || part.vconcat || [])[0];
    return inner ? wide(inner) * (part.spec && part.columns ? part.columns : 1) : 0;
  };
  const widened = (part, by) => {
    const mark = part.mark && (part.mark.type || part.mark);
    if (mark === "arc" || mark === "text") return;
    if (part.hconcat) {
      const sum = wide(part);
      for (const inner of part.hconcat) if (sum) widened(inner, (by * wide(inner)) / sum);
    } else if (part.concat) {
      for (const inner of part.concat) widened(inner, by / (part.columns || part.concat.length));
    } else if (typeof part.width === "number") {
      part.width = Math.max(110, part.width + by);
    } else {
      const share = by / ((part.spec && part.columns) || 1);
      for (const inner of [part.spec || [], part.layer || [], part.vconcat || []].flat()) widened(inner, share);
    }
  };
  const stepped = (part, factor) => {
    if (part.width && part.width.step) part.width.step *= factor;
    for (const key of ["hconcat", "vconcat", "concat", "layer"]) for (const inner of part[key] || []) stepped(inner, factor);
    if (part.spec) stepped(part.spec, factor);
  };

  // Rows are written as lists, with the names of their columns once; those of another rank or step go.
  const unpacked = (spec, choice, told) => {
    for (const [key, { columns, rows }] of Object.entries(spec.datasets)) {
      let kept = rows;
      for (const name of ["rank", "step"]) {
        const at = columns.indexOf(name);
        if (at < 0) continue;
        told[name] = true;
        if (choice[name] !== null) kept = kept.filter((row) => row[at] === null || String(row[at]) === String(choice[name]));
      }
      told.before = (told.before || 0) + rows.length;
      told.after = (told.after || 0) + kept.length;
      spec.datasets[key] = kept.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
    }
    return spec;
  };

  return { beside, fitted, inTheDark, stepped, unpacked, valuesOf, wide, widened, withFoldedNames };
})();
