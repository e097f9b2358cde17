/* Draws the page from the JSON in #data, which is gzipped, in base64. Text of the job is inserted as text nodes only. */
async function unpack(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}
if (!("DecompressionStream" in window)) document.getElementById("main").textContent = "This page needs a browser of 2023 or later.";
const data = await unpack("data");

/* ---- elements ---- */

/* make("p", {class: "x"}, "text", element, ..): strings become text nodes, null is left out. */
function make(tag, attributes, ...content) {
  return fill(document.createElement(tag), attributes, content);
}
function draw(tag, attributes, ...content) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, content);
}
function fill(e, attributes, content) {
  for (const [key, value] of Object.entries(attributes || {}))
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) e.setAttribute(key, value);
  for (const c of content.flat(Infinity)) if (c !== null && c !== undefined) e.append(c);
  return e;
}
/* Two buttons that open and close all details within an element. */
function foldTools(at) {
  return [[true, "Open all"], [false, "Close all"]].map(([all, name]) => make("button", {type: "button", class: "tool", onclick: () => { for (const d of at.querySelectorAll("details")) d.open = all; }}, name));
}
function tell(text) { document.getElementById("told").textContent = text; }
const types = ["f32", "f16", "bf16", "tf32", "f64"];
function typeClass(dtype) { return types.includes(dtype) ? "t-" + dtype : ""; }
function typeMark(dtype) { return make("span", {class: "type " + typeClass(dtype)}, dtype); }

/* ---- numbers ---- */

function scaled(n, units) {
  let i = 0;
  while (n >= 999.5 && i + 1 < units.length) n /= 1000, i++;
  return (n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toPrecision(3)) + " " + units[i];
}
const bytes = n => scaled(n, ["B", "kB", "MB", "GB", "TB"]);
const count = n => scaled(n, ["", "k", "M", "G", "T", "P"]).trim();
const time = us => us < 1 ? us.toPrecision(2) + " us" : scaled(us, ["us", "ms", "s"]);
function percent(part, all) {
  const p = all > 0 ? 100 * part / all : 0;
  return (p > 0 && p < .05 ? "< 0.1" : p.toFixed(p < 9.5 && p > 0 ? 1 : 0)) + " %";
}
const number = v => Number.isInteger(v) && Math.abs(v) < 1e9 ? v.toLocaleString("en") : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2) : v.toLocaleString("en", {maximumSignificantDigits: 4});

/* ---- charts that react ---- */

/* A chart that is as wide as the page, so that its text stays readable; drawn again if that changes. */
function fitted(drawChart) {
  const room = () => Math.max(320, Math.min(1160, document.documentElement.clientWidth - (document.documentElement.clientWidth > 640 ? 40 : 20)));
  let wide = room(), svg = drawChart(wide);
  window.addEventListener("resize", () => {
    if (room() === wide) return;
    const next = drawChart(wide = room());
    svg.replaceWith(next);
    svg = next;
  });
  return svg;
}
/* Mouse, touch and arrow keys choose one of the marks; read(index) shows it. at.value: the chosen mark, or -1. */
function chooser(svg, marks, at, reading, read) {
  function choose(i) {
    if (at.value >= 0) marks[at.value].classList.remove("at");
    at.value = i;
    marks[i].classList.add("at");
    reading.replaceChildren(...read(i));
  }
  at.move = by => {
    choose(Math.max(0, Math.min(marks.length - 1, at.value + by)));
    tell(reading.textContent);
  };
  if (at.value >= 0) choose(at.value);
  marks.forEach((m, i) => { m.addEventListener("pointerenter", () => choose(i)); m.addEventListener("click", () => choose(i)); });
  svg.addEventListener("keydown", e => {
    const all = marks.length, step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -all, End: all}[e.key];
    if (!step) return;
    at.move(step);
    e.preventDefault();
  });
}

/* ---- the head ---- */

const sections = [];
function section(id, title, ...content) {
  sections.push([id, title]);
  return make("section", {id, "aria-labelledby": id + "-title"}, make("h2", {id: id + "-title"}, title), ...content);
}

/* Text between backticks becomes a code element. */
function withCode(text) { return text.split("`").map((t, i) => i % 2 ? make("code", null, t) : t); }
function fact(value, what) { return make("div", {class: "fact"}, make("b", null, value), make("span", null, what)); }

const onCpu = data.target === "cpu";
function drawHead() {
  const s = data.step, head = document.getElementById("top");
  head.append(make("h1", null, data.job || runNames(data.logs).join(", ")));
  const device = onCpu ? `the CPU of the machine that made this page (${data.gpu.replace("this CPU, ", "")})` : `the GPU ${data.gpu} (${data.target})`;
  head.append(make("p", {class: "faint"}, data.job ? `Precision ${data.precision}${s ? `, block ${s.block}, batch ${s.batch}` : ""}. Times are predictions for ${device}${data.profile || data.logs.length ? ", except where they are called measured" : ""}. ` : "", `Made by ampc ${data.version}.`));
}

/* ---- the step ---- */

function drawFacts() {
  const s = data.step, facts = [fact(time(s.predicted.us), "predicted time of a training step")];
  const measured = data.profile && data.profile.blocks.find(b => b.train);
  if (measured) facts.push(fact(time(measured.measured_us), "measured time of a training step"));
  if (s.predicted.against) facts.push(fact((s.predicted.against_us / s.predicted.us).toPrecision(2) + " ×", `the speed of the same step in ${s.predicted.against}, predicted`));
  facts.push(fact(bytes(data.memory.bytes), `memory ${onCpu ? "for the training" : "of the GPU"}: weights, optimizer, activations`), fact(count(Object.values(s.flops_by_dtype).reduce((a, n) => a + n, 0)) + "FLOP", "arithmetic per step; a multiply-add is 2"),
    fact(bytes(s.read + s.written), "read and written in memory per step"), fact(bytes(s.cast_bytes), "of these by casts between types"),
    fact(String(s.weight_casts), "weights cast in each step; 0: the optimizer also writes 16-bit copies"), fact(String(s.commands), "commands per step: kernels and library calls"));
  return make("div", {class: "facts"}, facts);
}
const partNames = {products: "matrix products and convolutions", attention: "attention", casts: "casts alone", optimizer: "optimizer", kernels: "other kernels", launches: "launch overhead"};
const partColors = {products: "var(--f16)", attention: "var(--tf32)", casts: "var(--warn)", optimizer: "var(--f32)", kernels: "var(--bf16)", launches: "var(--other)"};
function partsBar(parts, most) {
  const names = Object.keys(parts), all = names.reduce((a, n) => a + parts[n], 0);
  return make("div", {class: "bar", role: "img", style: `width:${Math.max(1, 100 * all / most)}%`,
    "aria-label": names.map(n => `${partNames[n]} ${time(parts[n])}`).join(", ")},
    names.filter(n => parts[n]).map(n => make("i", {style: `flex:${parts[n]} 0 0;--c:${partColors[n]}`, title: `${partNames[n]}: ${time(parts[n])}, ${percent(parts[n], all)}`})));
}
function drawStep() {
  const s = data.step;
  if (!s) return null;
  const most = Math.max(s.predicted.us, s.predicted.against_us || 0);
  const rows = [make("span", {class: "mono"}, data.precision), partsBar(s.predicted.parts, most), make("span", null, time(s.predicted.us))];
  if (s.predicted.against) rows.push(make("span", {class: "mono"}, s.predicted.against), partsBar(s.predicted.against_parts, most), make("span", null, time(s.predicted.against_us)));
  const legend = Object.keys(s.predicted.parts).filter(n => s.predicted.parts[n] || s.predicted.against && s.predicted.against_parts[n]).map(n => make("span", null, make("i", {class: "swatch", style: `--c:${partColors[n]}`}), `${partNames[n]} ${percent(s.predicted.parts[n], s.predicted.us)}`));
  const types = Object.keys({...s.flops_by_dtype, ...s.predicted.us_by_dtype}).map(t => make("tr", null, make("td", null, typeMark(t)), make("td", {class: "n"}, count(s.flops_by_dtype[t] || 0)), make("td", {class: "n"}, time(s.predicted.us_by_dtype[t] || 0))));
  const table = make("table", null, make("thead", null, make("tr", null, make("th", null, "type of the result"), make("th", {class: "n"}, "FLOPs per step"), make("th", {class: "n"}, "predicted time per step"))), make("tbody", null, types));
  return section("step", "The training step", data.answer.length ? make("ul", {class: "answer"}, data.answer.map(a => make("li", null, withCode(a)))) : null, drawFacts(),
    make("h3", null, "Where the time goes, as predicted"), make("div", {class: "bars"}, rows), make("div", {class: "legend"}, make("span", {class: "faint"}, `of the step in ${data.precision}:`), legend),
    make("h3", null, "Operations by the type of their result"), make("div", {class: "scroll", style: "max-width:520px", tabindex: 0}, table));
}

/* ---- the model ---- */

/* Groups consecutive nodes by layer, recursively: [{name, path, items}, node, ..]. */
function nested(list, depth) {
  const items = [];
  for (const n of list) {
    const words = n.layer ? n.layer.split(".") : [];
    const last = items[items.length - 1];
    if (words.length <= depth) { items.push(n); continue; }
    const wide = words[depth + 1] === "*" ? 2 : 1; /* "h.*" is one layer */
    const path = words.slice(0, depth + wide).join(".");
    if (last && last.items && last.path === path) last.list.push(n);
    else items.push({path, name: words.slice(depth, depth + wide).join("."), depth: depth + wide, list: [n], items: []});
  }
  for (const i of items) if (i.items) i.items = nested(i.list, i.depth);
  return items;
}

let shown = null; /* the open panel and its button */
const buttons = new Map();
function closePanel() {
  if (!shown) return;
  shown.button.setAttribute("aria-expanded", "false");
  shown.panel.remove();
  for (const e of document.querySelectorAll(".node.in")) e.classList.remove("in");
  shown = null;
}
function term(list, key, value) {
  if (value !== null && value !== undefined && value !== "") list.append(make("dt", null, key), make("dd", null, value));
}
function openPanel(n, button) {
  const again = shown && shown.button === button;
  closePanel();
  if (again) return;
  const list = make("dl");
  term(list, "why this type", n.reason);
  term(list, "line of the job", n.line ? `${n.line}: ${sourceOf(n.line)}` : "made by the compiler");
  term(list, "type and shape", n.type);
  if (n.cast) term(list, "memory traffic", n.cast.bytes ? bytes(n.cast.bytes) : n.command ? "nothing: it is part of a kernel" : "nothing: the optimizer or the op that reads it makes the cast");
  term(list, "tensor cores", n.tensor && n.tensor !== "tensor cores" ? "no: " + n.tensor : n.tensor ? "yes" : "");
  term(list, "predicted cost", `${time(n.predicted_us)}, ${bytes(n.bytes)} read and written, ${count(n.flops)} FLOPs${n.times > 1 ? `, for all ${n.times} together` : ""}`);
  term(list, "part of kernel", n.command);
  term(list, "inputs", [...n.in.map(i => data.nodes[i].name || data.nodes[i].op), ...n.stored].join(", "));
  const title = n.cast ? `cast ${n.cast.from} → ${n.cast.to}` : `${n.op}${n.name ? " " + n.name : ""}`;
  const panel = make("div", {class: "told", role: "note"}, make("b", null, title), list);
  button.closest(".run").append(panel);
  button.setAttribute("aria-expanded", "true");
  for (const i of n.in) { const b = buttons.get(i); if (b) b.classList.add("in"); }
  shown = {button, panel};
  tell(`${title}: ${n.reason}`);
}
function sourceOf(line) {
  const k = data.kernels.find(k => k.line === line);
  return k ? k.source : "";
}

function nodeButton(n) {
  const attributes = {type: "button", "aria-expanded": "false", onclick: e => openPanel(n, e.currentTarget)};
  const times = n.times > 1 ? ` ×${n.times}` : "";
  const button = n.cast
    ? make("button", {...attributes, class: "cast" + (n.cast.bytes && n.predicted_us > data.step.predicted.us / 100 ? " dear" : ""), "data-cast": "", "aria-label": `cast from ${n.cast.from} to ${n.cast.to}`}, `${n.cast.from}→${n.cast.to}${times}`)
    : make("button", {...attributes, class: "node " + typeClass(n.dtype), title: n.type}, make("b", null, n.op), times, n.name ? ` ${n.name}` : "");
  buttons.set(data.nodes.indexOf(n), button);
  return button;
}

/* The type with the largest share of the layer's time. */
function mainType(list) {
  const by = {};
  for (const n of list) by[n.dtype] = (by[n.dtype] || 0) + n.predicted_us + 1e-9;
  return Object.keys(by).sort((a, b) => by[b] - by[a])[0];
}
function drawFlow(items) {
  const flow = make("div", {class: "flow"});
  let run = null;
  for (const i of items) {
    if (i.items) { flow.append(drawLayer(i)); run = null; continue; }
    if (!run) flow.append(run = make("div", {class: "run"}));
    run.append(nodeButton(i));
  }
  return flow;
}
function drawLayer(layer) {
  const us = layer.list.reduce((a, n) => a + n.predicted_us, 0), kinds = [...new Set(layer.list.filter(n => !n.cast).map(n => n.dtype))];
  const casts = layer.list.filter(n => n.cast).length;
  const times = layer.name.endsWith("*") ? Math.min(...layer.list.map(n => n.times)) : 1;
  const summary = make("summary", null, make("span", {class: "name mono"}, layer.name), times > 1 ? make("span", {class: "faint"}, `${times} alike`) : null,
    kinds.map(typeMark), casts ? make("span", {class: "faint"}, `${casts} cast${casts > 1 ? "s" : ""}`) : null, make("span", {class: "grow"}),
    make("span", {class: "faint"}, `${time(us)} (${percent(us, data.step.predicted.us)} of the step)`));
  const details = make("details", {class: "layer " + typeClass(mainType(layer.list))}, summary);
  details.open = layer.depth < 3;
  details.append(drawFlow(layer.items));
  return details;
}

function drawModel() {
  const phases = [["forward", "Forward"], ["backward", "Backward"], ["update", "Update and metrics"]];
  const at = make("div", {id: "graph"});
  let chosen = "forward";
  const tabs = phases.map(([phase, name]) => make("button", {type: "button", class: "tool", "data-phase": phase, onclick: () => show(phase)}, name));
  function show(phase) {
    chosen = phase;
    closePanel();
    buttons.clear();
    for (const t of tabs) t.setAttribute("aria-pressed", String(t.dataset.phase === chosen));
    at.replaceChildren(drawFlow(nested(data.nodes.filter(n => n.phase === phase), 0)));
  }
  show(chosen);
  /* The arrow keys move the focus between nodes. */
  at.addEventListener("keydown", e => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
    if (e.key === "Escape") { if (shown) shown.button.focus(); closePanel(); }
    if (!step) return;
    const all = [...at.querySelectorAll("summary, .node, .cast")].filter(b => b.checkVisibility ? b.checkVisibility() : b.offsetParent);
    const next = all[all.indexOf(document.activeElement) + step];
    if (next) { next.focus(); e.preventDefault(); }
  });
  const legend = make("div", {class: "legend faint"}, types.filter(t => data.nodes.some(n => n.dtype === t)).map(typeMark),
    make("span", null, make("span", {class: "cast"}, "f32→f16"), " a cast between types; a thick border marks more than 1 % of the step's time"));
  return section("model", "The model", make("p", null, "Each box is a layer, each chip an operation, coloured by the type of its result. Press one to see why it has that type and what it costs. Equal layers are one box. Times are predictions."),
    legend, make("div", {class: "tools"}, tabs, foldTools(at)), at);
}

/* ---- memory ---- */

function drawLives(wide, at, reading) {
  const m = data.memory, high = wide < 600 ? 360 : 420, left = 70, low = 30;
  const x = c => left + (wide - left - 10) * c / m.commands, y = b => 10 + (high - low - 10) * (1 - b / m.work);
  const svg = draw("svg", {class: "chart", viewBox: `0 0 ${wide} ${high}`, tabindex: 0, role: "application", id: "memory-chart",
    "aria-label": "values over the step and their addresses; arrow keys select a value"});
  for (let i = 0; i <= 4; i++) {
    const line = y(m.work * i / 4);
    svg.append(draw("line", {class: "grid", x1: left, x2: wide - 10, y1: line, y2: line}), draw("text", {x: left - 8, y: line + 4, "text-anchor": "end"}, bytes(m.work * i / 4)));
  }
  svg.append(draw("text", {x: left, y: high - 8}, "start of the step"), draw("text", {x: wide - 10, y: high - 8, "text-anchor": "end"}, `its last command, ${m.commands}`));
  const values = [...m.values].sort((a, b) => a[2] - b[2] || b[1] - a[1]);
  const rects = values.map(v => draw("rect", {class: "value " + typeClass(v[5]), x: x(v[2]).toFixed(1), y: y(v[0] + v[1]).toFixed(1), width: Math.max(.8, x(v[3] + 1) - x(v[2])).toFixed(1), height: Math.max(.4, y(v[0]) - y(v[0] + v[1])).toFixed(1)}));
  svg.append(...rects);
  chooser(svg, rects, at, reading, i => {
    const v = values[i];
    return [`${v[4]}: ${bytes(v[1])} at address ${bytes(v[0])}, used by commands ${v[2] + 1} to ${v[3] + 1} of ${m.commands}${v[6] ? `, line ${v[6]}: ${sourceOf(v[6])}` : ""}`];
  });
  return svg;
}
function drawMemory() {
  const m = data.memory, spaces = new Map();
  for (const [what, n] of m.spaces) spaces.set(what, (spaces.get(what) || 0) + n);
  const content = [make("div", {class: "scroll", style: "max-width:560px", tabindex: 0}, make("table", null, make("thead", null, make("tr", null, make("th", null, "what"), make("th", {class: "n"}, "size"), make("th", {class: "n"}, "share"))),
    make("tbody", null, [...spaces].map(([what, n]) => make("tr", null, make("td", null, what), make("td", {class: "n"}, bytes(n)), make("td", {class: "n"}, percent(n, m.bytes)))))))];
  if (m.values.length && m.commands) {
    const at = {value: -1}, reading = make("p", {class: "reading", id: "memory-reading"}, "Point at a value, or select one with the arrow keys.");
    const seen = new Set(m.values.map(v => typeClass(v[5]) ? v[5] : ""));
    content.push(make("h3", null, `Activations, gradients and other values that live within a step: ${bytes(m.work)} ("work")`), fitted(wide => drawLives(wide, at, reading)), make("div", {class: "legend"}, types.filter(t => seen.has(t)).map(typeMark), seen.has("") ? make("span", {class: "type"}, "other types") : null), reading,
      make("p", {class: "faint"}, "Horizontal: the commands of the step, in their order. Vertical: addresses. Each rectangle is a value, from the command that writes it to the last command that reads it."));
  }
  return section("memory", "Memory", make("p", null, `All that ${onCpu ? "the training" : "the GPU"} stores, without the data files.`), content);
}

/* ---- kernels ---- */

let texts = null; /* a promise of [[CUDA, PTX], ..] */
function codeBox(title, text) { return make("div", null, make("h3", null, title), make("pre", {tabindex: 0, "aria-label": title}, text)); }
async function toggleKernel(k, index, row, button, columns) {
  if (button.getAttribute("aria-expanded") === "true") {
    button.setAttribute("aria-expanded", "false");
    row.nextElementSibling.remove();
    return;
  }
  button.setAttribute("aria-expanded", "true");
  const cell = make("td", {colspan: columns, class: "whole"}, make("p", null, k.nodes), k.source ? make("p", {class: "mono"}, `line ${k.line}: ${k.source}`) : null);
  row.after(make("tr", null, cell));
  if (!k.text) { cell.append(make("p", {class: "faint"}, `${onCpu ? "oneDNN" : "cuBLASLt or cuDNN"} computes it, so there is no text of a kernel.`)); return; }
  const [cuda, ptx] = (await (texts ||= unpack("texts")))[index];
  if (onCpu) { cell.append(codeBox("C", cuda)); return; }
  cell.append(make("div", {class: "sides"}, codeBox("CUDA", cuda), ptx ? codeBox(`PTX for ${data.target}`, ptx) : make("p", {class: "faint"}, data.note || "no PTX")));
}
function drawKernels() {
  const most = 30, s = data.step;
  const heads = [["command", "whole"], ["times", "n"], ["predicted", "n"], ["bytes", "n", "read and written"], ["FLOPs", "n"], ["types", "k", "of the inputs > of the results"], ["shape", "k", "of the result"], ["line of the job", "whole"]];
  const body = make("tbody");
  const addRow = (k, index) => {
    const button = make("button", {type: "button", class: "open", "aria-expanded": "false", onclick: e => toggleKernel(k, index, row, e.currentTarget, heads.length)}, k.name);
    const cells = [button, String(k.times), `${time(k.predicted_us)} (${percent(k.predicted_us, s.predicted.us)})`, bytes(k.read + k.written), k.flops ? count(k.flops) : "-", k.types.replace(/[,>*]/g, "$&\u200b"), k.shape, k.line ? make("span", null, String(k.line), make("span", {class: "mono faint"}, " " + k.source)) : "-"];
    const row = make("tr", null, cells.map((c, i) => make("td", {class: heads[i][1] || null, "data-label": heads[i][0]}, c)));
    body.append(row);
  };
  const rest = data.kernels.slice(most), restUs = rest.reduce((a, k) => a + k.predicted_us, 0);
  data.kernels.slice(0, most).forEach(addRow);
  const more = rest.length ? make("button", {type: "button", class: "tool", style: "margin-top:8px", onclick: e => { e.currentTarget.remove(); rest.forEach((k, i) => addRow(k, most + i)); }}, `Show ${rest.length} more, ${time(restUs)} (${percent(restUs, s.predicted.us)}) together`) : null;
  return section("kernels", "Kernels", make("p", null, `The commands of the step, the slowest first. A command starts a kernel or calls a library (${onCpu ? "oneDNN" : "cuBLASLt, cuDNN"}). Commands that run the same kernel share a row. Press a name for its ${onCpu ? "C code" : data.note ? "CUDA code" : "CUDA code and PTX"}. Bytes are read and written. Types: inputs > results.`),
    data.note ? make("p", {class: "faint"}, data.note[0].toUpperCase() + data.note.slice(1) + ".") : null,
    make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "kernels"}, make("table", {class: "stack"}, make("thead", null, make("tr", null, heads.map(([h, c, title]) => make("th", {class: c || null, scope: "col", title}, h)))), body)), more);
}

/* ---- ranges of values: amp probe ---- */

const limits = {f16: [-24, 16], bf16: [-133, 128], f32: [-149, 128]};
const kinds = {value: "values", gradient: "gradients", weight: "weights", update: "updates"};
function drawRange(v) {
  const wide = 600, high = 26, low = -60, top = 40, x = e => wide * (Math.max(low, Math.min(top, e)) - low) / (top - low);
  const all = v.exponents.reduce((a, e) => a + e[1], 0) || 1, most = Math.max(1, ...v.exponents.map(e => e[1]));
  const svg = draw("svg", {class: "chart", viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", height: high, role: "img",
    "aria-label": `${v.name}: from ${number(v.least)} to ${number(v.greatest)}; f16 loses ${v.f16.over} to infinity, ${v.f16.under} to zero`});
  svg.append(draw("rect", {class: "t-f16", x: x(limits.f16[0]), width: x(limits.f16[1]) - x(limits.f16[0]), y: 0, height: high, fill: "var(--f16-soft)"}));
  for (const [e, n] of v.exponents) {
    const h = Math.max(2, (high - 4) * n / most), out = e < limits.f16[0] || e >= limits.f16[1];
    svg.append(draw("rect", {x: x(e), width: wide / (top - low), y: high - h, height: h, fill: out ? "var(--warn)" : "var(--f32)"}, draw("title", null, `2^${e}: ${n} of ${all}`)));
  }
  const lost = v.f16.over + v.f16.under, bad = v.nan + v.infinite;
  return make("div", {class: "range"}, make("div", null, make("b", null, v.name), " ", typeMark(v.type), make("div", {class: "faint"}, `${number(v.least)} to ${number(v.greatest)}${lost ? `; f16 would lose ${percent(lost, v.elements)}` : ""}${bad ? `; ${bad} not finite` : ""}${v.line ? `; line ${v.line}` : ""}`)), svg);
}
function drawProbe() {
  const p = data.probe;
  if (!p) return null;
  const lost = v => v.nan + v.infinite > 0 ? 2 : (v.f16.over + v.f16.under) / Math.max(1, v.elements);
  const groups = Object.keys(kinds).map(kind => [kind, p.values.filter(v => v.kind === kind).sort((a, b) => lost(b) - lost(a))]).filter(g => g[1].length);
  return section("ranges", "Ranges of values", make("p", null, `Exponents of the values of ${p.steps} step${p.steps === 1 ? "" : "s"}, from 2^-60 to 2^40. The shaded range fits f16; bf16 and f32 extend beyond both ends of the chart. Numbers that f16 would lose are red. The worst values come first.`),
    p.findings && p.findings.length ? make("ul", {class: "answer"}, p.findings.map(f => make("li", null, f.text, f.help ? `; ${f.help}` : ""))) : null,
    groups.map(([kind, values], i) => { const d = make("details", {class: "layer"}, make("summary", null, make("span", {class: "name"}, kinds[kind]), make("span", {class: "faint"}, String(values.length))), make("div", {style: "padding:4px 12px 12px"}, values.map(drawRange))); d.open = i === 0; return d; }));
}

/* ---- measured times: amp profile ---- */

/* A table of times; `first`: title of the first column and the function of its content. */
function timesTable([title, first], rows, all) {
  const us = v => v === null ? "-" : time(v);
  const columns = [[title, first, "whole"], ["measured", r => `${time(r.measured_us)} (${percent(r.measured_us, all)})`, "n"], ["predicted", r => us(r.predicted_us), "n"], ["limit", r => us(r.limit_us), "n"], ["idle", r => us(r.idle_us), "n"]];
  const shown = columns.filter(([, f], i) => !i || rows.some(r => f(r) !== "-"));
  const body = rows.map(r => make("tr", null, shown.map(([name, f, c]) => make("td", {class: c, "data-label": name}, f(r)))));
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "times by " + title}, make("table", {class: "stack"}, make("thead", null, make("tr", null, shown.map(([name, , c]) => make("th", {class: c, scope: "col"}, name)))), make("tbody", null, body)));
}
function drawProfile() {
  const p = data.profile, most = 40;
  if (!p) return null;
  const blocks = p.blocks.filter(b => b.train).map(b => {
    const slowest = [...b.commands].sort((x, y) => y.measured_us - x.measured_us).slice(0, most);
    const predicted = b.commands.reduce((a, c) => a + (c.predicted_us || 0), 0);
    const line = s => make("span", {class: "mono"}, s.line ? `${s.line}: ${s.source}` : "(no line)");
    const tables = [["work", s => s.work, b.by_work], ["layer", s => s.layer || "(no layer)", b.by_layer.slice(0, most)], ["line", line, b.by_line.slice(0, most)], ["command", c => c.name, slowest]];
    return [make("p", null, `${b.name}, batch ${b.batch}${b.remainder ? ", the last of an epoch" : ""}: ${time(b.measured_us)}, mean of ${b.runs}${p.predicted_for ? `, predicted ${time(predicted)}` : ""}. Besides: ${time(b.loader_us)} of waiting for data, ${time(b.upload_us)} of copying the batch to the device.`),
      tables.map(([title, first, rows], i) => { const d = make("details", {class: "layer"}, make("summary", null, make("span", {class: "name"}, "by " + title)), timesTable([title, first], rows, b.measured_us)); d.open = i === 0; return d; })];
  });
  return section("measured", "Measured times", make("p", null, `Measured on ${p.device}${p.threads ? `, ${p.threads} threads` : ""}${p.predicted_for ? `; predicted for ${p.predicted_for}` : ""}. Limit: the time for the operands in memory, each once, or for the FLOPs at the peak rate, whichever is longer.${p.threads ? " Idle: mean time in which a thread does not compute." : ""}`), blocks.flat(2));
}

/* ---- the page ---- */

drawHead();
const parts = [drawRuns(), ...(!data.job ? [] : data.step ? [drawStep(), drawProfile(), drawModel(), drawProbe(), drawTune(), drawMemory(), drawKernels()] : [drawMemory()])];
document.getElementById("main").replaceChildren(...parts.filter(p => p));
document.getElementById("top").append(make("nav", {"aria-label": "sections"}, sections.map(([id, title]) => make("a", {href: "#" + id}, title))));
if (!data.job) document.querySelector(".skip").remove();
document.documentElement.dataset.drawn = "yes";
