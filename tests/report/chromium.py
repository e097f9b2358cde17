"""Drives a headless Chromium through its debugging pipe: NUL-terminated JSON messages on file descriptors 3 and 4.
Needs only Python's own library."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page; `errors` has exceptions and console messages, `requests` the URLs that it has requested."""

    def __init__(self):
        self.errors, self.requests, self.buffer, self.id = [], [], b"", 0
        self.profile = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, from_write = os.pipe()

        def pipes():
            # the ends of the pipes themselves may be 3 or 4
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.profile, "XDG_CONFIG_HOME": self.profile, "XDG_CACHE_HOME": self.profile})
        os.close(to_read)
        os.close(from_write)
        self.session = None
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (EOFError, BrokenPipeError):
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    # ---- messages ----

    def message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            some = os.read(self.back, 1 << 16)
            if not some:
                raise EOFError("Chromium has ended")
            self.buffer += some
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def note(self, m):
        params = m.get("params", {})
        if m.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif m.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif m.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif m.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, **params):
        self.id += 1
        m = {"id": self.id, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.to, json.dumps(m).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self.message(deadline)
            if answer.get("id") == self.id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    # ---- the page ----

    def look(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("document.documentElement?.dataset.drawn === 'yes'")

    def wait(self, condition):
        deadline = time.monotonic() + 60
        while not self.value(f"!!({condition})"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"not seen: {condition}; {self.errors}")
            time.sleep(0.05)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def key(self, key, code=None, text=None):
        number = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
                  "End": 35, "Home": 36}[key]
        common = {"key": key, "code": code or key, "windowsVirtualKeyCode": number, "nativeVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": "\r"} if key == "Enter" else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector):
        at = self.value(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: "center"}}); const r = e.getBoundingClientRect();
            return [r.x + r.width / 2, r.y + r.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    def picture(self, path, whole=True):
        import base64

        clip = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 16000), "scale": 1},
                    "captureBeyondViewport": True}
        data = self.call("Page.captureScreenshot", format="png", **clip)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
