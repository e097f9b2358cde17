#!/usr/bin/env python3
"""Tests the pages of `amp report` in Chromium. They load without console messages and without requests. They fit widths
of 1200 and 400 pixels, in light and dark, with enough contrast. A click on a cast shows its reason, by mouse and by
keyboard. Memory, kernels and trials of amp tune react to input. No text of the job becomes markup or code.

usage: tests/report/report.py AMP [--pictures DIR]   exit status 77 without Chromium
"""
import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

import chromium

LIMIT = 400_000
HOSTILE = """# </script><script>document.documentElement.dataset.hacked = "yes"</script><!-- <script>
data samples() { return synthetic(64, [8]), synthetic(64, [], dtype=i64, low=0, high=4) }
module Net() {
  fc = Linear(8, 4)
  def forward(x) { return fc(x) }  # </script><img src=x onerror="document.documentElement.dataset.hacked = 'yes'">
}
model net = Net()
optimizer opt = SGD(net, lr=0.1)
precision f16
train x, y in samples() with batch=32, epochs=2, log=1 {
  minimize cross_entropy(net(x), y) with opt                                # <b>&amp;
  metric half = 0.5 * cross_entropy(net(x), y)
}
"""
CONTRAST = """(() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const lum = c => { const f = c.slice(0, 3).map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
  const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c.length && c[3] !== 0) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("svg, .hidden, .skip, script, style")) continue;
    const a = lum(parse(getComputedStyle(e).color)), b = lum(ground(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)} "${e.textContent.slice(0, 30)}"`);
  }
  return bad.slice(0, 5);
})()"""

failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


def run(*command, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        raise SystemExit(f"FAILED: {' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def data_of(page):
    with open(page, encoding="utf-8") as f:
        text = f.read()
    found = re.search(r'<script type="text/plain" id="data">(.*?)</script>', text, re.S)
    return text, json.loads(gzip.decompress(base64.b64decode(found.group(1))))


def check_file(name, page):
    text, data = data_of(page)
    check(len(text.encode()) < LIMIT, f"{name}: {len(text.encode())} bytes")
    check(not re.search(r'(src|href)="(https?:)?//', text), f"{name}: it names the network")
    check(data["nodes"] and data["kernels"] and data["memory"]["values"], f"{name}: an empty page")
    return data


def check_looks(b, name, page, pictures):
    for width in (1200, 400):
        for dark in (False, True):
            where = f"{name}, {width} pixels, {'dark' if dark else 'light'}"
            b.look(width, 900, dark)
            b.open(page)
            check(not b.errors, f"{where}: {b.errors[:3]}")
            b.errors.clear()
            wide = b.value("document.documentElement.scrollWidth")
            check(wide <= width, f"{where}: {wide} pixels wide")
            bad = b.value(CONTRAST)
            check(not bad, f"{where}: too little contrast: {bad}")
            if pictures:
                b.picture(os.path.join(pictures, f"{name}_{width}_{'dark' if dark else 'light'}.png"))
    asked = [r for r in b.requests if not r.startswith(("file:", "data:", "blob:"))]
    check(not asked, f"{name}: it asks for {asked[:3]}")


def check_cast(b, data):
    """Opens a cast by mouse, then by keyboard alone from the top of the page."""
    cast = next(i for i, n in enumerate(data["nodes"]) if n["cast"] and n["phase"] == "forward" and n["reason"].startswith("for "))
    why = data["nodes"][cast]["reason"]
    b.value("for (const d of document.querySelectorAll('#graph details')) d.open = true")
    shown = [n["reason"] for n in data["nodes"] if n["cast"] and n["phase"] == "forward"]
    b.value(f"document.querySelectorAll('#graph .cast')[{shown.index(why)}].id = 'wanted'")
    b.click("#wanted")
    check(b.value("document.querySelector('.told')?.textContent.includes(" + json.dumps(why) + ")"),
          f"a click on a cast does not tell: {why}")
    b.key("Escape")
    check(b.value("!document.querySelector('.told')"), "Escape does not close the panel")
    b.value("document.activeElement.blur(), window.scrollTo(0, 0)")
    for _ in range(200):
        b.key("Tab")
        if b.value("document.activeElement.id") == "wanted":
            break
    check(b.value("document.activeElement.id") == "wanted", "Tab does not reach the cast")
    check(b.value("getComputedStyle(document.activeElement).outlineStyle") == "solid", "focus is not visible")
    b.key("Enter")
    check(b.value("document.querySelector('.told')?.textContent.includes(" + json.dumps(why) + ")"),
          "Enter on a cast does not tell")
    b.key("ArrowLeft")
    check(b.value("document.activeElement.id") != "wanted", "arrow keys do not move between nodes")


def check_memory(b):
    b.value("document.getElementById('memory-chart').focus()")
    seen = set()
    for key in ("ArrowRight", "ArrowRight", "End"):
        b.key(key)
        seen.add(b.value("document.getElementById('memory-reading').textContent"))
    check(len(seen) == 3 and all(" at " in s for s in seen), f"memory by keyboard: {seen}")
    check(b.value("document.querySelectorAll('#memory-chart .value.at').length") == 1, "one value is chosen")


def check_kernels(b, data):
    own = next(i for i, k in enumerate(data["kernels"]) if k["text"])
    b.value(f"document.querySelectorAll('#kernels .open')[{own}].id = 'kernel'")
    b.click("#kernel")
    b.wait("document.querySelector('#kernels pre')")
    check(b.value("document.querySelector('#kernels pre').textContent.includes('__global__')"), "no CUDA of a kernel")
    if "note" not in data:
        check(b.value("document.querySelectorAll('#kernels pre')[1].textContent.includes('.entry')"), "no PTX")


def check_run(b, amp, work, pictures):
    """Curves of a run and ranges of a probe, for a job with text that could become code."""
    job, page = os.path.join(work, "<b>&.amp"), os.path.join(work, "hostile.html")
    with open(job, "w", encoding="utf-8") as f:
        f.write(HOSTILE)
    run(amp, "train", "--device", "cpu", "--quiet", "--log-dir", os.path.join(work, "log"), job, cwd=work)
    probe = os.path.join(work, "probe.json")
    run(amp, "probe", "--device", "cpu", "--steps", "2", "--json", "--output", probe, job, cwd=work)
    with open(probe, encoding="utf-8") as f:
        found = json.load(f)
    found["values"][0]["name"] = "<b>x"
    with open(probe, "w", encoding="utf-8") as f:
        json.dump(found, f)
    run(amp, "report", "--no-ptx", "--log", os.path.join(work, "log"), "--probe", probe, "-o", page, job)
    check_looks(b, "hostile", page, pictures)
    check(b.value("document.documentElement.dataset.hacked") is None, "text of the job is run")
    check(b.value("document.title") == "<b>&.amp", "the title is not the job's name")
    check(b.value("[...document.querySelectorAll('#run figure h3')].slice(0, 2).map(e => e.textContent)") == ["loss", "half"], "curves")
    check(b.value("document.querySelector('main > section').id") == "run", "the run is not first")
    ranges = b.value("document.querySelectorAll('#ranges svg').length")
    wanted = sum(v["kind"] != "scale" for v in found["values"]) # a scale is not a value of the model
    check(ranges == wanted, f"{ranges} of {wanted} ranges")
    check(b.value("[...document.querySelectorAll('#ranges b')].some(e => e.textContent === '<b>x')"), "a name became markup")


def check_measured(b, amp, work, pictures):
    """Measured times of the job with hostile text, on a page for the CPU; the profile of another job is refused."""
    job, page, profile = (os.path.join(work, name) for name in ("<b>&.amp", "measured.html", "profile.json"))
    run(amp, "profile", "--device", "cpu", "--steps", "2", "--json", "--output", profile, job, cwd=work)
    run(amp, "report", "--gpu", "cpu", "--profile", profile, "-o", page, job)
    check_looks(b, "measured", page, pictures)
    check(b.value("document.documentElement.dataset.hacked") is None, "text of the job is run beside measured times")
    with open(profile, encoding="utf-8") as f:
        block = json.load(f)["blocks"][0]
    wanted = sum(len(block[k]) for k in ("by_work", "by_layer", "by_line", "commands"))
    check(b.value("document.querySelectorAll('#measured tbody tr').length") == wanted, "rows of measured times")
    check(b.value("document.querySelector('#measured thead').textContent.includes('idle')"), "no idle time")
    own = next(i for i, k in enumerate(data_of(page)[1]["kernels"]) if k["text"])
    b.value(f"document.querySelectorAll('#kernels .open')[{own}].id = 'kernel'")
    b.click("#kernel")
    b.wait("document.querySelector('#kernels pre')")
    check(b.value("document.querySelector('#kernels h3').textContent") == "C", "the text of a kernel for the CPU")
    for options, why in ((("--gpu", "h200", "--no-ptx"), "the profile is of cpu in f16, the page of h200 in f16"),
                         (("--gpu", "cpu", "--set", "precision=f32"), "the page of cpu in f32")):
        done = subprocess.run([amp, "report", *options, "--profile", profile, "-o", page, job], capture_output=True, text=True)
        check(done.returncode == 3 and why in done.stderr, f"{options}: {done}")
    done = subprocess.run([amp, "report", "--gpu", "cpu", "--set", "precision=f16", "--profile", profile, "-o", page,
                           "models/fashion_mnist/mlp.amp"], capture_output=True, text=True)
    check(done.returncode == 3 and "no command `" in done.stderr, f"the profile of another job: {done}")


def deviation(trial):
    known = [trial["gradient"], trial["loss"]]
    return float("inf") if None in known else max(known)


def check_plot(b, tune):
    """Places of the marks; the front; the chosen trial; mouse, keyboard and buttons."""
    trials = tune["trials"]
    at = {int(n): [float(v) for v in re.findall(r"[0-9.]+", to)] for n, to in b.value(
        "[...document.querySelectorAll('#tune-chart .mark')].map(m => [m.dataset.trial, m.getAttribute('transform')])")}
    check(sorted(at) == list(range(1, len(trials) + 1)), f"marks of trials {sorted(at)}")
    for i, one in enumerate(trials, 1):
        for k, other in enumerate(trials, 1):
            x, y = (round(at[k][a] - at[i][a]) for a in (0, 1))
            check(x == 0 or (other["predicted_us"] > one["predicted_us"]) == (x > 0), f"times of trials {i} and {k}")
            check(deviation(one) != deviation(other) or y == 0, f"equal deviations of trials {i} and {k}")
            check(y == 0 or (deviation(other) < deviation(one)) == (y > 0), f"deviations of trials {i} and {k}")
    bound = float(b.value("document.querySelector('#tune-chart .bound').getAttribute('y1')"))
    check(all((deviation(t) <= tune["bound"]) == (at[i][1] >= bound) for i, t in enumerate(trials, 1)), "the bound")
    best = [t for t in trials if deviation(t) < float("inf") and not any(
        o["predicted_us"] <= t["predicted_us"] and deviation(o) <= deviation(t) and (o["predicted_us"], deviation(o)) != (t["predicted_us"], deviation(t)) for o in trials)]
    corners = sorted({tuple(at[trials.index(t) + 1]) for t in best})
    path = [float(v) for v in re.findall(r"[0-9.]+", b.value("document.getElementById('tune-front').getAttribute('d')"))]
    check(len(corners) > 2 and list(zip(path[::2], path[1::2])) == corners, f"the front {path}, not {corners}")
    shapes = b.value("new Set([...document.querySelectorAll('#tune-chart .mark')].map(m => m.getAttribute('d'))).size")
    check(shapes == 4, f"{shapes} shapes for f32, f16, bf16 and several types")
    chosen = next(i for i, t in enumerate(trials, 1) if t["precision"] == tune["chosen"])
    reading = "document.getElementById('tune-reading').textContent"
    check(b.value(reading).startswith(f"Trial {chosen}, chosen: "), f"the chosen trial: {b.value(reading)}")
    on_top = f"document.elementFromPoint(...(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('[data-trial=\"{chosen}\"]').getBoundingClientRect()))"
    b.value("document.getElementById('tune-chart').scrollIntoView()")
    check(b.value(on_top + ".dataset.trial") == str(chosen), "another mark hides the chosen one")
    wide = next(i for i, t in enumerate(trials, 1) if "bf16" in t["types"])
    b.click(f"#tune-chart [data-trial='{wide}']")
    check(re.match(rf"Trial {wide}: 8 bf16\. .*gradients deviate by 0\.012, the loss by 0\.0027; within the bound\.", b.value(reading)),
          f"a click on a mark: {b.value(reading)}")
    check(b.value("document.querySelector('#tune-reading pre').textContent") == trials[wide - 1]["precision"], "a declaration")
    b.value("document.getElementById('tune-chart').focus()")
    seen = set()
    for key in ("Home", *["ArrowRight"] * (len(trials) - 1)):
        b.key(key)
        seen.add(b.value(reading))
    check(len(seen) == len(trials), f"the keyboard reaches {len(seen)} of {len(trials)} trials")
    check(b.value(reading).startswith("Trial 1: 8 f32. 87.7 us predicted; "), f"the slowest trial: {b.value(reading)}")
    check(b.value("document.getElementById('told').textContent") == b.value(reading), "keys are not told")
    b.value("document.querySelectorAll('#tune .tools button')[0].id = 'previous'")
    b.click("#previous")
    check(b.value("document.querySelector('#tune-chart .at').dataset.trial") == "11", "the button for the previous trial")


def check_modules(b, tune):
    """Types, deviations and ranges of the modules. The expected ones are computed from the file in another way."""
    shown = "[...document.querySelectorAll('#tune-modules svg')].filter(s => s.checkVisibility()).length"
    check(b.value(shown) == 6, f"{b.value(shown)} modules are open at first")
    b.value("document.querySelectorAll('#tune .tools')[1].firstChild.id = 'open'")
    b.click("#open")
    check(b.value(shown) == 8, f"{b.value(shown)} modules are open at last")
    rows = {path: text for path, text in b.value("""[...document.querySelectorAll('#tune-modules svg')].map(s =>
        [s.getAttribute('aria-label').split(':')[0], s.closest('.module').innerText.replace(/\\s+/g, ' ')])""")}
    check(list(rows) == [m["path"] for m in tune["modules"] if m["own"]], f"modules: {list(rows)}")
    chosen = next(t for t in tune["trials"] if t["precision"] == tune["chosen"])
    for i, m in enumerate(tune["modules"]):
        for kind in ("f16", "bf16") if m["own"] else ():
            found = [(sum(k in ("f16", "bf16") for k in t["types"]) - 1, deviation(t)) for t in tune["trials"] if t["types"][i] == kind]
            others, v = min(found)
            text = f"{kind} {v:.2g} with {others} others" if v >= 1e-3 else f"{kind} {v:.1e} with".replace("e-0", "e-")
            check(text in rows[m["path"]], f"{m['path']}: no `{text}` in {rows[m['path']]}")
        if m["own"]:
            check(f"{m['type']} {chosen['types'][i]}" in rows[m["path"]], f"the type of {m['path']}: {rows[m['path']]}")
    red = b.value("""[...document.querySelectorAll('#tune-modules svg')].filter(s => s.querySelector('[fill="var(--warn)"]'))
        .map(s => s.getAttribute('aria-label').split(':')[0])""")
    wanted = [m["path"] for m in tune["modules"] if m["own"] and (m["least"] < 2.0**-24 or m["greatest"] > 65504)]
    check(wanted and red == wanted, f"ranges beyond f16: {red}, not {wanted}")


def check_tune(b, amp, work, pictures):
    """The section of a tuning run: of the file here, of one with pins and hostile text, of one that is not finished, and
    of one that amp tune writes now."""
    job, fixture, page, file = "tests/report/tune.amp", "tests/report/tune.json", *(os.path.join(work, f) for f in ("tune.html", "tune.json"))

    def draw(tune, looks=None):
        with open(file, "w", encoding="utf-8") as f:
            json.dump(tune, f)
        run(amp, "report", "--no-ptx", "--tune", file, "-o", page, job)
        if looks:
            check_looks(b, looks, page, pictures)
        b.look(1200, 900, False)
        b.open(page)
        check(not b.errors, f"{looks}: {b.errors[:3]}")

    with open(fixture, encoding="utf-8") as f:
        tune = json.load(f)
    # as small as trial 3, and not finite: trial 3 tells more about its modules
    tune["trials"].append({**tune["trials"][2], "precision": "precision f16 {}", "gradient": None, "loss": None})
    draw(tune)
    check_plot(b, tune)
    check_modules(b, tune)
    check(b.value("document.getElementById('tune').textContent.includes('does not say why')"), "pins without reasons")
    hostile = "</script><img src=x onerror=\"document.documentElement.dataset.hacked = 'yes'\">"
    over = {**tune["modules"][2], "greatest": 7e4, "steps_over": 3, "type": hostile}
    with_pins = {**tune, "job": hostile, "gpu": hostile, "modules": [*tune["modules"][:2], over, *tune["modules"][3:]], "pins": [
        {"path": "net.blocks.1", "type": "f32", "reason": hostile, "us": 1.25}, {"path": "", "type": hostile, "reason": "b", "us": None}]}
    with_pins["trials"] = [{**t, "precision": t["precision"] + hostile} for t in tune["trials"]]
    with_pins["chosen"] += hostile
    draw(with_pins, "tune")
    check(b.value("document.documentElement.dataset.hacked") is None and b.value("!document.querySelector('img')"), "text of the file is run")
    cells = b.value("[...document.querySelectorAll('#tune-pins td')].map(e => e.textContent)")
    check(cells == ["net.blocks.1", "f32", hostile, "1.25 us", "the train block", hostile, "b", "unknown"], f"pins: {cells}")
    text = b.value("document.getElementById('tune-modules').textContent")
    check("to 70,000; f16 overflows in 3 of 100 steps" in text, "no overflow in a module")
    over = b.value("document.querySelector('[aria-label^=\"net.first:\"] [fill=\"var(--warn)\"]')?.getAttribute('width')")
    check(over and float(over) > 1, f"an overflow is {over} % wide")
    first, last = {**tune["modules"][2], "greatest": None, "least": None}, {**tune["modules"][-1], "own": False}
    draw({**tune, "chosen": None, "bound": None, "modules": [*tune["modules"][:2], first, *tune["modules"][3:-1], last],
          "trials": [{**tune["trials"][0], "predicted_us": None}, *tune["trials"][1:]]})
    check(b.value("document.querySelectorAll('#tune-chart .mark').length") == len(tune["trials"]) - 1, "a trial without a time is drawn")
    check(b.value("document.getElementById('tune').textContent.includes('the search has not ended')"), "an unfinished search")
    names = b.value("[...document.querySelectorAll('#tune-modules b')].map(e => e.textContent)")
    check(names[:2] == ["net", "first"] and "last" not in names, f"modules that compute: {names}")
    refuse_tune(amp, work, tune, file, page)
    job, now = os.path.join(work, "<b>&.amp"), os.path.join(work, "now.json")
    run(amp, "tune", "--quiet", "--device", "cpu", "--steps", "2", "--batches", "1", "--types", "bf16", "--state", now, job, cwd=work)
    run(amp, "report", "--no-ptx", "--tune", now, "-o", page, job)
    b.open(page)
    with open(now, encoding="utf-8") as f:
        tune = json.load(f)
    check(not b.errors and len(tune["trials"]) > 1, f"the file of amp tune: {b.errors[:3]}")
    check(b.value("document.querySelectorAll('#tune-chart .mark').length") == len(tune["trials"]), "trials of amp tune")
    check(b.value("document.querySelectorAll('#tune-pins tbody tr').length") == len(tune.get("pins") or []), "pins of amp tune")


def refuse_tune(amp, work, tune, file, page):
    """Files that --tune refuses: of another job, of another command, damaged, no JSON, none."""
    short = {**tune, "trials": [{**tune["trials"][0], "types": ["f32"]}]}
    other = {**tune, "modules": tune["modules"][:-1] + [{**tune["modules"][-1], "path": "net.end"}]}
    for content, why in ((other, "of another job: its module 9 is net.end, here it is net.last; run amp tune for this job"),
                         ({**tune, "modules": tune["modules"][:-1]}, "its module 9 is missing, here it is net.last"),
                         ({**tune, "modules": [*tune["modules"], {**tune["modules"][0], "path": "x"}]}, "its module 10 is x, here it is missing"),
                         (short, "damaged; delete it, and run amp tune again"),
                         ({"values": []}, "not the output of amp tune: job is missing"), ([1], "it is a list, not an object"),
                         ({**tune, "pins": {"a": 1}}, "pins is an object, not a list"), ({**tune, "pins": [5]}, "pins[0] is a number, not an object"),
                         ({**tune, "trials": tune["trials"][:1] + [{**tune["trials"][1], "loss": "x"}]}, "trials[1].loss is text, not a number"),
                         ("{", "line 1: no JSON: string or '}' expected"), (None, "No such file")):
        with open(file, "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        if not content:
            os.remove(file)
        done = subprocess.run([amp, "report", "--no-ptx", "--tune", file, "-o", page, "tests/report/tune.amp"], capture_output=True, text=True)
        check(done.returncode == 3 and why in done.stderr, f"{why}: {done}")


def check_output(amp, work):
    """A file that amp report did not write is not overwritten; a page of amp report is."""
    page = os.path.join(work, "page.html")
    with open(page, "w", encoding="utf-8") as f:
        f.write("mine")
    job = "models/fashion_mnist/mlp.amp"
    done = subprocess.run([amp, "report", "--no-ptx", "-o", page, job], capture_output=True, text=True)
    check(done.returncode == 3 and "is no page of amp report" in done.stderr, f"it writes over a file: {done}")
    os.remove(page)
    for _ in range(2):
        run(amp, "report", "--no-ptx", "-o", page, job)


def main():
    amp = os.path.abspath(sys.argv[1])
    pictures = sys.argv[3] if sys.argv[2:3] == ["--pictures"] else None
    if not chromium.find():
        print("no Chromium on this machine (scripts/setup --test installs Debian's)")
        return 77
    with tempfile.TemporaryDirectory() as work:
        b = chromium.Browser()
        try:
            for name, job, options in (("mlp", "models/fashion_mnist/mlp.amp", []), ("gpt2", "models/gpt2/gpt2.amp", ["--no-ptx"])):
                page = os.path.join(work, name + ".html")
                run(amp, "report", "--gpu", "h200", *options, "-o", page, job)
                data = check_file(name, page)
                check_looks(b, name, page, pictures)
            rows = "document.querySelectorAll('#kernels tbody tr').length"
            check(b.value(rows) == 30 < len(data["kernels"]), "the slowest commands of gpt2")
            b.value("document.querySelector('#kernels .tool').id = 'more'")
            b.click("#more")
            check(b.value(rows) == len(data["kernels"]), "all commands of gpt2")
            b.look(1200, 900, False)
            b.open(os.path.join(work, "mlp.html"))
            data = data_of(os.path.join(work, "mlp.html"))[1]
            check_cast(b, data)
            check_memory(b)
            check_kernels(b, data)
            check_run(b, amp, work, pictures)
            check_measured(b, amp, work, pictures)
            check_tune(b, amp, work, pictures)
            check_output(amp, work)
        finally:
            b.close()
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
