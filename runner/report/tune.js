/* The section of a tuning run: its trials, the pins of the chosen one, and the modules. page.js has the functions that
 * this file uses, and calls drawTune. */

/* ---- trials ---- */

/* The marks of the plot, by the types of a trial besides f32. */
const marks = {
  f32: "M-5-5h10v10h-10z", f16: "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0z", bf16: "M0-7L7 6h-14z", tf32: "M0-8L8 0L0 8L-8 0z",
  mixed: "M-2-7h4v5h5v4h-5v5h-4v-5h-5v-4h5z",
};
function kindOf(trial) {
  const kinds = [...new Set(trial.types)].filter(k => k && k !== "f32");
  return kinds.length > 1 ? "mixed" : marks[kinds[0]] ? kinds[0] : kinds.length ? "mixed" : "f32";
}
function deviation(trial) {
  return trial.gradient === null || trial.loss === null ? Infinity : Math.max(trial.gradient, trial.loss);
}
const rough = v => v === 0 || v >= 1e-3 && v < 1e5 ? String(+v.toPrecision(2)) : v.toExponential(1);
/* "49 f16, 1 tf32": how many modules have which type. */
function counts(list) {
  return [...new Set(list)].map(k => [list.filter(t => t === k).length, k]).sort((a, b) => b[0] - a[0]).map(c => c.join(" ")).join(", ");
}
function chosenOf(d, trials) { return trials.find(t => t.precision === d.chosen); }
/* The trials of which no other is both faster and closer to f32. `trials` are sorted by time, then deviation. */
function frontOf(trials) {
  let best = Infinity;
  return trials.filter(t => {
    const better = deviation(t) < best;
    best = Math.min(best, deviation(t));
    return better;
  });
}
function trialText(d, trial, others) {
  const facts = [trial.predicted_us ? `${time(trial.predicted_us)} predicted` : "", trial.measured_us ? `${time(trial.measured_us)} measured for forward and backward` : "",
    deviation(trial) === Infinity ? "the loss or a gradient is not finite" : `gradients deviate by ${rough(trial.gradient)}, the loss by ${rough(trial.loss)}`,
    d.bound && deviation(trial) <= d.bound ? "within the bound" : "", trial.scale > 1 ? `loss scale ${number(trial.scale)}` : ""];
  return [make("p", null, make("b", null, `Trial ${d.trials.indexOf(trial) + 1}${trial === chosenOf(d, d.trials) ? ", chosen" : ""}: `),
    `${counts(trial.types.filter(t => t))}. `, facts.filter(f => f).join("; "), others ? `. ${others} more at the same point` : "", "."),
    make("pre", {tabindex: 0, "aria-label": "declaration"}, trial.precision)];
}

/* The vertical scale of the plot: a band for deviations that are not finite, decades, and a band for 0. */
function deviationScale(d, trials, high) {
  const known = trials.map(deviation).concat(d.bound || []).filter(v => v > 0 && v < Infinity).map(Math.log10);
  const low = Math.floor(Math.min(0, ...known)), top = Math.max(low + 1, Math.ceil(Math.max(...known, low)));
  const first = trials.some(t => deviation(t) === Infinity) ? 62 : 30, last = high - (trials.some(t => deviation(t) === 0) ? 82 : 50);
  const y = v => v === Infinity ? 43 : v === 0 ? high - 61 : first + (last - first) * (top - Math.log10(v)) / (top - low);
  return {y, decades: Array.from({length: top - low + 1}, (_, i) => Number("1e" + (low + i))), bands: [[Infinity, "not finite", first > 30], [0, "0", last < high - 50]].filter(b => b[2])};
}
/* Steps of 1, 2 or 5 times a power of ten. */
function ticksOf(from, to, most) {
  const rough = (to - from) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(s => s * power).find(s => s >= rough), out = [];
  for (let v = Math.ceil(from / step) * step; v <= to; v += step) out.push(v);
  return out;
}
function drawTrials(d, trials, wide, at, reading) {
  const high = wide < 600 ? 360 : 420, left = 74, right = wide - 24, {y, decades, bands} = deviationScale(d, trials, high);
  const least = trials[0].predicted_us, most = Math.max(trials[trials.length - 1].predicted_us, least * 1.001);
  const x = us => left + 14 + (right - left - 14) * (us - least) / (most - least), place = t => `${x(t.predicted_us).toFixed(1)} ${y(deviation(t)).toFixed(1)}`;
  const svg = draw("svg", {class: "chart", viewBox: `0 0 ${wide} ${high}`, tabindex: 0, role: "application", id: "tune-chart", "aria-label": "trials, by time and deviation; arrow keys select a trial"});
  svg.append(draw("text", {x: 8, y: 17}, "deviation from f32, of gradients or loss"), draw("text", {x: right, y: high - 8, "text-anchor": "end"}, `time of a step, predicted for ${d.gpu}`));
  for (const [v, name] of bands) svg.append(draw("rect", {x: left, width: wide - 10 - left, y: y(v) - 11, height: 22, fill: "var(--other-soft)"}), draw("text", {x: left - 8, y: y(v) + 4, "text-anchor": "end"}, name));
  for (const v of decades) svg.append(draw("line", {class: "grid", x1: left, x2: wide - 10, y1: y(v), y2: y(v)}), draw("text", {x: left - 8, y: y(v) + 4, "text-anchor": "end"}, String(v)));
  for (const us of ticksOf(least, most, wide < 600 ? 5 : 8)) svg.append(draw("line", {class: "grid", x1: x(us), x2: x(us), y1: high - 50, y2: high - 44}), draw("text", {x: x(us), y: high - 30, "text-anchor": "middle"}, time(us)));
  if (d.bound) svg.append(draw("line", {class: "bound", x1: left, x2: wide - 10, y1: y(d.bound), y2: y(d.bound)}));
  /* between two trials of the front, the faster one is the best for its time */
  svg.append(draw("path", {class: "curve", id: "tune-front", d: frontOf(trials).map((t, i) => i ? `H${x(t.predicted_us).toFixed(1)}V${y(deviation(t)).toFixed(1)}` : "M" + place(t)).join("")}));
  const shapes = trials.map(t => draw("path", {class: "mark " + typeClass(kindOf(t)), "data-trial": d.trials.indexOf(t) + 1, d: marks[kindOf(t)], transform: `translate(${place(t)})`}));
  const chosen = chosenOf(d, trials), end = chosen && x(chosen.predicted_us) > wide - 100;
  svg.append(...shapes);
  if (chosen) svg.append(shapes[trials.indexOf(chosen)], draw("circle", {cx: x(chosen.predicted_us), cy: y(deviation(chosen)), r: 11, fill: "none", stroke: "var(--ink)", "stroke-width": 2, "pointer-events": "none"}),
    draw("text", {class: "dark", x: x(chosen.predicted_us) + (end ? -16 : 16), y: y(deviation(chosen)) + 14, "text-anchor": end ? "end" : "start"}, "chosen"));
  if (d.bound) svg.append(draw("text", {class: "dark", x: right, y: y(d.bound) - 5, "text-anchor": "end"}, `bound ${number(d.bound)}`));
  chooser(svg, shapes, at, reading, i => trialText(d, trials[i], trials.filter(t => place(t) === place(trials[i])).length - 1));
  return svg;
}
function drawPlot(d) {
  const trials = d.trials.filter(t => t.predicted_us).sort((a, b) => a.predicted_us - b.predicted_us || deviation(a) - deviation(b));
  if (!trials.length) return make("p", null, "No trial has a predicted time.");
  const at = {value: trials.indexOf(chosenOf(d, trials))}, reading = make("div", {class: "tune-reading", id: "tune-reading"}, "Point at a mark, or select one with the arrow keys.");
  const move = (by, name) => make("button", {type: "button", class: "tool", onclick: () => at.move(by)}, name);
  const legend = Object.keys(marks).filter(k => trials.some(t => kindOf(t) === k)).map(k => make("span", {class: typeClass(k)},
    draw("svg", {class: "chart", style: "display:inline;border:0;background:none;width:20px;height:20px;margin-right:4px;vertical-align:-5px", viewBox: "-10 -10 20 20"}, draw("path", {class: "mark", d: marks[k]})),
    k === "f32" ? "all f32" : k === "mixed" ? "several types" : k));
  return [fitted(wide => drawTrials(d, trials, wide, at, reading)), make("div", {class: "legend"}, legend), make("div", {class: "tools"}, move(-1, "Previous trial"), move(1, "Next trial")), reading];
}

/* ---- pins ---- */

function drawPins(d) {
  if (!chosenOf(d, d.trials)) return make("p", null, "No trial is chosen, because the search has not ended.");
  if (!d.pins) return make("p", null, "The file does not say why these modules are pinned. The chosen declaration has the pins.");
  if (!d.pins.length) return make("p", null, "No module is pinned.");
  const costs = us => us === null ? "unknown" : us > 0 ? time(us) : "nothing";
  const columns = [["module", p => make("code", null, p.path || "the train block"), "whole"], ["type", p => typeMark(p.type), null], ["reason", p => p.reason, null], ["costs", p => costs(p.us), "n"]];
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "pins"}, make("table", {class: "stack", id: "tune-pins"},
    make("thead", null, make("tr", null, columns.map(([name, , c]) => make("th", {class: c, scope: "col"}, name)))),
    make("tbody", null, d.pins.map(p => make("tr", null, columns.map(([name, f, c]) => make("td", {class: c, "data-label": name}, f(p))))))));
}

/* ---- modules ---- */

/* The smallest trial in which the module has this type; of equally small ones, that which deviates least. */
function smallestTrial(d, index, type) {
  const low = t => t.types.filter(k => k === "f16" || k === "bf16").length;
  return d.trials.filter(t => t.types[index] === type).sort((a, b) => low(a) - low(b) || deviation(a) - deviation(b)).map(t => [deviation(t), low(t) - 1])[0];
}
function sensitivityOf(d, index) {
  const found = ["f16", "bf16"].map(type => [type, smallestTrial(d, index, type)]).filter(f => f[1]);
  if (!found.length) return make("div", {class: "faint"}, "not tried in 16 bits");
  return found.map(([type, [v, others]]) => make("div", null, typeMark(type), v === Infinity ? " not finite, " : ` ${rough(v)} `, make("span", {class: "faint"}, others ? `with ${others} other${others > 1 ? "s" : ""}` : "alone")));
}

/* From 2^-30 to 2^40, or as far as the values need. */
function spreadScale(modules) {
  const logs = modules.flatMap(m => [m.least, m.greatest]).filter(v => v > 0).map(Math.log2);
  const low = Math.floor(Math.min(-30, ...logs)), top = Math.ceil(Math.max(40, ...logs));
  return v => 100 * (v === null ? 1 : Math.max(0, (Math.log2(v) - low) / (top - low)));
}
/* Least subnormal, least normal and greatest number of f16; its label, and how far that is moved to the left. */
const f16Limits = [[2 ** -24, "2^-24", 100], [2 ** -14, "2^-14", 0], [65504, "65504", 50]];
function spreadText(d, m) {
  if (m.greatest === 0) return "no 16-bit values of its own";
  const ends = [m.least, m.greatest].map(v => v === null ? "not finite" : number(v)).join(" to ");
  return ends + (m.steps_over ? `; f16 overflows in ${m.steps_over} of ${d.steps} steps` : "") + (m.under ? `; f16 makes ${percent(m.under, 1)} of a value 0` : "");
}
function drawSpread(d, m, x) {
  const [tiny, normal, most] = f16Limits.map(l => x(l[0])), from = x(m.least || m.greatest), to = Math.max(from + .5, x(m.greatest));
  const svg = draw("svg", {class: "spread", viewBox: "0 0 100 16", preserveAspectRatio: "none", role: "img", "aria-label": `${m.path}: ${spreadText(d, m)}`});
  const rect = (a, b, y, fill) => { if (b > a) svg.append(draw("rect", {x: a.toFixed(2), width: (b - a).toFixed(2), y, height: 16 - 2 * y, fill})); };
  rect(tiny, most, 0, "var(--f16-soft)");
  const seen = 1.5; /* least width of a part that f16 loses */
  if (from < tiny) rect(Math.min(from, tiny - seen), Math.min(to, tiny), 1, "var(--warn)");
  rect(Math.max(from, tiny), Math.min(to, most), 5, "var(--f32)");
  if (to > most) rect(Math.max(from, most), Math.max(to, most + seen), 1, "var(--warn)");
  for (const at of [tiny, normal, most]) rect(at - .1, at + .1, 0, "var(--faint)");
  return svg;
}

function modulesIn(d, chosen, outer, x) {
  return d.modules.map((m, i) => m.parent === outer ? drawModule(d, chosen, i, x) : null).filter(e => e);
}
/* One module with the modules in it; null: none of them computes. Module 0 is the train block, without the models. */
function drawModule(d, chosen, index, x) {
  const m = d.modules[index], inside = index ? modulesIn(d, chosen, index, x) : [];
  if (!m.own && !inside.length) return null;
  const outer = index && d.modules[m.parent].path, name = outer ? m.path.slice(outer.length + 1) : m.path || "the train block";
  const held = chosen ? d.modules.map((n, i) => n.path.startsWith(m.path + ".") ? chosen.types[i] : null).filter(t => t) : [];
  const row = [make("div", null, make("b", {class: "mono" + (inside.length ? " fold" : "")}, name), " ", make("span", {class: "faint"}, m.type), " ", chosen && m.own ? typeMark(chosen.types[index]) : null,
    held.length ? make("div", {class: "faint"}, `${held.length} inside: ${new Set(held).size > 1 ? counts(held) : "all " + held[0]}`) : null)];
  if (m.own) row.push(make("div", {class: "ends"}, m.greatest === 0 ? null : drawSpread(d, m, x), make("span", {class: "faint"}, spreadText(d, m))), make("div", null, sensitivityOf(d, index)));
  if (!inside.length) return make("div", {class: "module"}, row);
  const details = make("details", null, make("summary", {class: "module"}, row), make("div", {class: "below"}, inside));
  details.open = !m.path.includes(".") || new Set(held.concat(m.own && chosen ? chosen.types[index] : [])).size > 1;
  return details;
}
function drawModules(d) {
  const x = spreadScale(d.modules), chosen = chosenOf(d, d.trials);
  const ticks = f16Limits.map(([v, name, back]) => make("span", {style: `left:${x(v)}%;transform:translateX(-${back}%)`}, name));
  const at = make("div", {class: "scroll modules", id: "tune-modules"}, make("div", {class: "module faint"}, make("div", null, "module, and its type in the chosen trial"), make("div", {class: "ends ticks"}, ticks), make("div", null, "deviation from f32 in 16 bits")), modulesIn(d, chosen, 0, x));
  return [make("h3", null, "Modules"), make("p", null, "Bars: the least and greatest absolute value that f16 would store, of the run in f32. The shaded range fits f16; left of 2^-14, f16 has fewer digits. Values in the red parts become 0 or infinite in f16. On the right: the trial with the fewest modules in 16 bits, of those in which this one is."), make("div", {class: "tools"}, foldTools(at)), at];
}

function drawTune() {
  const d = data.tune;
  if (!d) return null;
  return section("tune", "Precision of modules", make("p", null, `amp tune has compared ${d.trials.length} declarations for ${d.job} with f32, after ${d.steps} steps of training. Each mark is such a trial. No other trial is both faster and closer to f32 than one on the line.`),
    drawPlot(d), make("h3", null, "Pins"), drawPins(d), drawModules(d));
}
