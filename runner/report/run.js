/* The section of runs of amp train --log-dir: one run, or several beside each other. page.js has the functions that this
 * file uses, and calls drawRuns. A column of a table is {name, points: [step, seconds, value, ..], means, count, bad, ..}; Note [sampled columns] in log.c. */

/* ---- the names of columns ---- */

const columnNames = {lr: "learning rate", scale: "loss scale", skipped: "skipped steps so far (gradients not finite)",
  replayed: "replayed steps so far (gradients not finite)", grad_norm: "norm of the gradients", weight_norm: "norm of the weights",
  update_norm: "norm of the updates", samples_per_second: "training speed, samples per second", data_wait: "fraction of the time spent waiting for data"};
/* {name, block, metric, mode}: of a metric of a block, with the mode of run.json: lower values are better ("min"), higher ones
 * ("max"), or it is not known. Others have only a group, "lr" for "lr.opt", and the rest of their name. */
function columnOf(log, column) {
  const block = log.blocks.filter(b => column.name.startsWith(b + ".")).sort((a, b) => b.length - a.length)[0];
  if (block !== undefined) return {block, metric: column.name.slice(block.length + 1), mode: log.run?.modes?.[column.name]};
  const dot = column.name.indexOf("."), group = dot > 0 && columnNames[column.name.slice(0, dot)] ? column.name.slice(0, dot) : column.name;
  return {group, rest: column.name.slice(group.length + 1)};
}
/* The order of charts: losses, other metrics, learning rate, loss scale, the rest, speed. */
function rankOf({metric, mode, group}) {
  if (metric !== undefined) return mode === "min" ? 0 : 1;
  return {lr: 2, scale: 3, skipped: 4, replayed: 4, samples_per_second: 6, data_wait: 6}[group] || 5;
}
function runNames(logs) {
  const short = logs.map(l => l.folder.replace(/\/+$/, "").split("/").pop() || l.folder);
  return short.map((n, i) => short.filter(o => o === n).length > 1 || n === "." ? logs[i].folder : n);
}

/* ---- charts ---- */

const runColors = ["--f32", "--f16", "--bf16", "--f64", "--tf32", "--other"];
const styleOf = i => `--c:var(${runColors[i % runColors.length]});--d:${["none", "7 4", "2 4"][Math.floor(i / runColors.length) % 3]}`;

/* The points of a column, or its means, as objects. x: 0 for steps, 1 for seconds. */
function pointsOf(column, x, list = column.points) {
  const out = [];
  for (let i = 0; i < list.length; i += 3) out.push({step: list[i], x: list[i + x], y: list[i + 2]});
  return out;
}
function bestOf(points, mode) {
  return mode === "min" || mode === "max" ? points.reduce((a, p) => (mode === "min" ? p.y < a.y : p.y > a.y) ? p : a) : null;
}
/* The running median, which a spike does not move; null: too few points to need it. If the points are only lowest and
 * highest values, it is the median of the means. */
function smooth(column, x) {
  const points = pointsOf(column, x, column.means.length ? column.means : column.points), reach = Math.floor(points.length / 40);
  if (reach < 2) return null;
  return points.map((p, i) => {
    const side = Math.min(reach, i, points.length - 1 - i), near = points.slice(i - side, i + side + 1).map(q => q.y).sort((a, b) => a - b);
    return {...p, y: near[near.length >> 1]};
  });
}
const axisText = v => [v, number(+v.toPrecision(6)).replace(/\.?0*e/, "e")];
/* 1, 2 and 5 times the powers of ten in a range, or only these powers; about `most` of them. */
function decades(low, high, most) {
  const all = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) for (const m of [1, 2, 5]) all.push([+`${m}e${e}`, m]);
  const within = all.filter(([v]) => v >= low && v <= high), some = within.length <= most ? within : within.filter(([, m]) => m === 1);
  return some.filter((_, i) => i % Math.ceil(some.length / most) === 0).map(([v]) => axisText(v));
}
/* The width of a chart: two beside each other, where there is room. */
const chartRoom = room => room > 640 ? Math.floor((room - 18) / 2) : room;

/* series: [{label, style, points, best, soft}]; soft: smoothed points, or null. `unit`: of x. */
function drawChart(room, title, series, unit, reading) {
  const wide = chartRoom(room), high = 250, right = wide - 14, low = 206, digit = 7;
  const xs = series.flatMap(s => s.points.map(p => p.x)), ys = series.flatMap(s => s.points.map(p => p.y));
  const least = (list, f) => list.reduce((a, v) => f(a, v));
  let [x0, x1, y0, y1] = [least(xs, Math.min), least(xs, Math.max), least(ys, Math.min), least(ys, Math.max)];
  [y0, y1] = [Math.max(y0, -1e300), Math.min(y1, 1e300)]; /* so that their difference is finite */
  const logarithmic = y0 > 0 && y1 > 50 * y0, f = logarithmic ? Math.log10 : v => v;
  if (y0 === y1) { y0 -= Math.abs(y0) / 10 || 1; y1 += Math.abs(y1) / 10 || 1; }
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  let ticks = logarithmic ? decades(y0, y1, 6) : ticksOf(y0, y1, 5);
  if (!logarithmic) { /* the axis begins and ends at a tick */
    const each = ticks[1] - ticks[0] || y1 - y0, first = Math.floor(y0 / each + 1e-6), last = Math.ceil(y1 / each - 1e-6);
    ticks = Array.from({length: last - first + 1}, (_, k) => axisText((first + k) * each));
    [y0, y1] = [first * each, last * each];
  }
  const left = 16 + digit * least(ticks.map(t => t[1].length), Math.max);
  const x = v => left + (right - left) * (v - x0) / (x1 - x0), y = v => 14 + (low - 14) * (1 - (f(v) - f(y0)) / (f(y1) - f(y0)));
  const svg = draw("svg", {class: "chart", viewBox: `0 0 ${wide} ${high}`, tabindex: 0, role: "application",
    "aria-label": `${title} over ${unit}: ${series.map(s => `${s.label} ends at ${number(s.points[s.points.length - 1].y)}`).join(", ")}; arrow keys read values`});
  for (const [v, text] of ticks) svg.append(draw("line", {class: "grid", x1: left, x2: right, y1: y(v), y2: y(v)}), draw("text", {x: left - 6, y: y(v) + 4, "text-anchor": "end"}, text));
  for (const [v, text] of ticksOf(x0, x1, wide < 480 ? 4 : 6).filter(v => unit !== "steps" || Number.isInteger(v)).map(axisText)) svg.append(draw("line", {class: "grid", x1: x(v), x2: x(v), y1: low, y2: low + 5}), draw("text", {x: Math.min(x(v), wide - 4 - digit * text.length / 2), y: low + 19, "text-anchor": "middle"}, text));
  svg.append(draw("text", {x: right, y: high - 8, "text-anchor": "end"}, unit + (logarithmic ? "; vertical axis logarithmic" : "")));
  const path = points => points.map((p, i) => `${i ? "L" : "M"}${x(p.x).toFixed(1)} ${y(p.y).toFixed(1)}`).join("");
  for (const s of series) {
    const {soft} = s;
    svg.append(draw("path", {class: soft ? "curve thin" : "curve", style: s.style, d: path(s.points)}));
    if (soft) svg.append(draw("path", {class: "curve", style: s.style, d: path(soft)}));
    if (s.points.length <= 40) svg.append(...s.points.map(p => draw("circle", {class: "dot", style: s.style, cx: x(p.x), cy: y(p.y), r: 2.6})));
    if (s.best) svg.append(draw("circle", {class: "best", style: s.style, cx: x(s.best.x), cy: y(s.best.y), r: 6}));
  }
  const line = draw("line", {class: "cursor", y1: 14, y2: low, x1: -9, x2: -9});
  svg.append(line);
  const longest = series.reduce((a, s) => s.points.length > a.points.length ? s : a).points;
  const nearest = (points, v) => points.reduce((a, p) => Math.abs(p.x - v) <= Math.abs(a.x - v) ? p : a);
  let at = -1;
  const read = i => {
    at = Math.max(0, Math.min(longest.length - 1, i));
    const p = longest[at];
    line.setAttribute("x1", x(p.x)); line.setAttribute("x2", x(p.x));
    reading.textContent = series.map(s => { const q = nearest(s.points, p.x); return `${s.label} ${number(q.y)} at step ${number(q.step)}`; }).join("; ");
  };
  svg.addEventListener("pointermove", e => {
    const box = svg.getBoundingClientRect();
    read(longest.indexOf(nearest(longest, x0 + (x1 - x0) * ((e.clientX - box.left) * wide / box.width - left) / (right - left))));
  });
  svg.addEventListener("keydown", e => {
    const all = longest.length, step = {ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -all, End: all}[e.key];
    if (!step) return;
    read(at + step);
    tell(reading.textContent);
    e.preventDefault();
  });
  return svg;
}

/* Learning rates, scales and counts are exact. */
const isNoisy = chart => chart.rank < 2 || chart.rank > 4;
/* chart: {title, metric, rank, columns: [{label, style, column}]}; x: 0 for steps, 1 for seconds. */
function chartFigure(chart, x) {
  const series = chart.columns.map(c => {
    const points = pointsOf(c.column, x);
    return {...c, points, soft: isNoisy(chart) ? smooth(c.column, x) : null, best: bestOf(points, c.mode)};
  });
  const reading = make("p", {class: "faint reading"}, "");
  const legend = series.map(s => {
    const last = s.points[s.points.length - 1], best = s.best && s.best !== last ? `, best ${number(s.best.y)} at step ${number(s.best.step)}` : s.best && s.points.length > 1 ? ", the best" : "";
    return make("span", {style: s.style}, make("i", {class: "dash"}), s.label || series.length > 1 ? make("b", null, (s.label || "all") + " ") : null, `${number(last.y)} at the end${best}`);
  });
  return make("figure", {"data-chart": chart.title}, make("figcaption", null, make("h3", null, chart.title), make("div", {class: "legend"}, legend)),
    fitted(room => drawChart(room, chart.title, series, x ? "seconds of training" : "steps", reading)), reading);
}
const isConstant = column => column.points.every((v, i) => i % 3 !== 2 || v === column.points[2]);

/* The charts, first those that matter most. A chart of one run has the blocks beside each other, one of several runs the runs. */
function chartsOf(logs) {
  const charts = new Map(), names = runNames(logs), one = logs.length === 1;
  logs.forEach((log, i) => {
    for (const column of log.columns.filter(c => c.count)) {
      const of = columnOf(log, column), group = of.metric ?? columnNames[of.group] ?? of.group, part = of.block ?? of.rest;
      const key = JSON.stringify(one ? [group, of.metric !== undefined] : [column.name]);
      if (!charts.has(key)) charts.set(key, {title: one || !part ? group : `${group} (${part})`, metric: of.metric, rank: rankOf(of), columns: []});
      const chart = charts.get(key);
      chart.columns.push({label: one ? part : names[i], style: styleOf(one ? chart.columns.length : i), column, mode: of.mode});
    }
  });
  return [...charts.values()].sort((a, b) => a.rank - b.rank);
}

/* ---- tables ---- */

function runsTable(label, names, rows) {
  const cell = (value, i) => make("td", {"data-label": names[i]}, value);
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, make("table", {class: "stack runs"},
    make("thead", null, make("tr", null, make("th", {scope: "col"}, label), names.map(n => make("th", {scope: "col"}, n)))),
    make("tbody", null, rows.map(([name, ...values]) => make("tr", null, make("td", {class: "whole"}, name), values.map(cell))))));
}
/* Best and last value of each metric; the best one of all runs is bold. */
function metricsTable(logs, names) {
  const all = new Map(logs.flatMap(l => l.columns.filter(c => c.count).map(c => [c.name, columnOf(l, c)])).filter(([, of]) => of.metric !== undefined));
  const rows = [...all].flatMap(([name, {block, metric, mode}]) => {
    const points = logs.map(l => { const c = l.columns.find(o => o.name === name && o.count); return c ? pointsOf(c, 0) : null; });
    return [["best", p => bestOf(p, mode)], ["last", p => p[p.length - 1]]].filter(([which]) => mode || which === "last").map(([which, pick]) => {
      const picked = points.map(p => p && pick(p)), top = bestOf(picked.filter(p => p), mode);
      return [make("span", null, make("b", null, `${block} ${metric}`), ", " + which), ...picked.map(p => !p ? "-" : make("span", null, make(top && p.y === top.y ? "b" : "span", null, number(p.y)), make("span", {class: "faint"}, ` at step ${number(p.step)}`)))];
    });
  });
  return rows.length ? runsTable("metric", names, rows) : null;
}
/* The settings of run.json as [name, text], nested ones with dots. */
function settingsOf(value, name) {
  if (Array.isArray(value)) return [[name, value.map(v => typeof v === "string" ? v : JSON.stringify(v)).join(" ")]];
  if (value === null || typeof value !== "object") return [[name, typeof value === "number" ? number(value) : String(value)]];
  return Object.entries(value).flatMap(([key, v]) => settingsOf(v, name ? `${name}.${key}` : key));
}
const settingNames = {run: "job", version: "version of ampc"};
const settingName = key => settingNames[key] || key.replace(/^(settings|blocks)\./, "").replace(/^const\./, "-D ").replace(/^options\./, "--").replace(/^optimizers\./, "optimizer ");
function settingsTable(logs, names, all) {
  const each = logs.map(l => new Map(l.run ? settingsOf(l.run, "") : []));
  const keys = [...new Set(each.flatMap(m => [...m.keys()]))].filter(k => !k.startsWith("modes.")).filter(k => all || new Set(each.map(m => m.get(k))).size > 1);
  const rows = keys.map(k => [make("span", {class: "mono"}, settingName(k)), ...each.map(m => m.has(k) ? m.get(k) : "-")]);
  return rows.length ? runsTable("setting", names, rows) : null;
}
function drawSettings(logs, names) {
  const without = names.filter((_, i) => !logs[i].run), several = logs.length > 1;
  const differ = several ? settingsTable(logs, names, false) : null, all = settingsTable(logs, names, true);
  return [several ? make("h3", null, "Settings that differ") : null, several ? differ || make("p", null, without.length ? "No settings can be compared." : "All settings are equal.") : null,
    without.length ? make("p", {class: "faint"}, `Without run.json, settings are unknown: ${without.join(", ")}. amp train --log-dir writes this file.`) : null,
    all ? make("details", {class: "layer"}, make("summary", null, make("span", {class: "name"}, several ? "All settings" : "Settings of the run")), all) : null];
}

/* ---- the section ---- */

function runText(log) {
  const run = log.run, last = log.columns.reduce((a, c) => c.count ? Math.max(a, c.points[c.points.length - 3]) : a, 0);
  const seconds = log.columns.reduce((a, c) => c.count ? Math.max(a, c.points[c.points.length - 2]) : a, 0);
  const of = run ? [run.run, run.precision ? `in ${run.precision}` : null, run.device ? `on ${run.device}` : null].filter(t => typeof t === "string").join(" ") : log.folder;
  return `${of}: ${number(last)} step${last === 1 ? "" : "s"}${seconds ? `, ${time(seconds * 1e6)} of training` : ""}.`;
}
/* What the charts do not show. */
function notesOf(logs, names, constant) {
  const notes = [];
  const lead = i => logs.length > 1 ? names[i] + ": " : "";
  logs.forEach((log, i) => {
    for (const c of log.columns.filter(c => c.bad)) notes.push(`${lead(i)}${c.name} has ${c.bad} value${c.bad > 1 ? "s" : ""} that ${c.bad > 1 ? "are" : "is"} infinite or NaN, first at step ${c.first_bad}`);
  });
  if (constant.length) notes.push("Constant, without a chart: " + constant.map(c => `${c.title} ${number(c.columns[0].column.points[2])}`).join(", "));
  return notes.map(n => make("p", {class: "faint"}, n + "."));
}
function drawRuns() {
  const logs = data.logs, names = runNames(logs);
  if (!logs.length) return null;
  const every = chartsOf(logs), flat = c => c.metric === undefined && c.columns.every(o => isConstant(o.column) && o.column.points[2] === c.columns[0].column.points[2]);
  const constant = every.filter(flat), charts = every.filter(c => !flat(c)), main = charts.filter(c => c.rank < 5), other = charts.filter(c => c.rank >= 5);
  const at = make("div"), buttons = [];
  function show(x) {
    buttons.forEach((b, i) => b.setAttribute("aria-pressed", String(i === x)));
    const grid = list => make("div", {class: "curves"}, list.map(c => chartFigure(c, x)));
    const fold = () => make("details", {class: "layer", ontoggle: e => { if (e.currentTarget.children.length === 1) e.currentTarget.append(grid(other)); }}, make("summary", null, make("span", {class: "name"}, `${other.length} more charts`)));
    at.replaceChildren(grid(main), other.length > 6 ? fold() : grid(other));
  }
  buttons.push(...["By step", "By time"].map((name, x) => make("button", {type: "button", class: "tool", onclick: () => show(x)}, name)));
  show(0);
  const smoothed = charts.some(c => isNoisy(c) && c.columns.some(o => smooth(o.column, 0)));
  return section("run", logs.length > 1 ? "Runs beside each other" : "The run", logs.length > 1 ? null : make("p", null, runText(logs[0])),
    every.length ? null : make("p", null, "The table has no steps yet."),
    logs.length > 1 ? [metricsTable(logs, names), drawSettings(logs, names), make("h3", null, "Curves")] : null,
    charts.length ? [make("p", {class: "faint"}, `${smoothed ? "Thin: the values of the log; of a long log, the lowest and highest of each part. Thick: smoothed by a running median. " : ""}${charts.some(c => c.columns.some(o => o.mode)) ? "A circle marks the best value of a metric, if run.json says which values are better. " : ""}Point at a chart, or use the arrow keys, to read values.`), make("div", {class: "tools"}, buttons), at] : null,
    notesOf(logs, names, constant), logs.length > 1 ? null : drawSettings(logs, names));
}
