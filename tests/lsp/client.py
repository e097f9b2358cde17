"""A client of `amp lsp` for tests and the benchmark: only Python's standard library."""
import json
import os
import select
import subprocess
import time


class Client:
    """Starts a server and talks to it. Notifications of the server collect in `notes`."""

    def __init__(self, amp, *args, encodings=("utf-8",), initialize=True):
        self.server = subprocess.Popen([amp, "lsp", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL)
        self.rest, self.id, self.notes = b"", 0, []
        if initialize:
            self.initialized = self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {
                "general": {"positionEncodings": list(encodings)}}})["result"]
            self.tell("initialized", {})

    def raw(self, data):
        self.server.stdin.write(data)
        self.server.stdin.flush()

    def send(self, message):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self, seconds=20):
        """The next message of the server; None if it has gone."""
        until = time.monotonic() + seconds
        while True:
            head, found, rest = self.rest.partition(b"\r\n\r\n")
            size = int(head.split(b":")[1]) if found else 0
            if found and len(rest) >= size:
                self.rest = rest[size:]
                return json.loads(rest[:size])
            if not select.select([self.server.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the server does not answer")
            more = os.read(self.server.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.rest += more

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method, params):
        """The whole answer to a request."""
        self.id += 1
        self.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        while True:
            message = self.receive()
            if message is None or message.get("id") == self.id:
                return message
            self.notes.append(message)

    # ---- files ----

    def open(self, path, text):
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri(path), "languageId": "amp", "version": 1,
                                                            "text": text}})

    def change(self, path, text, version=2):
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri(path), "version": version},
                                             "contentChanges": [{"text": text}]})

    def diagnostics(self, path):
        """The next diagnostics for a file."""
        while True:
            for note in self.notes:
                if note.get("params", {}).get("uri") == uri(path):
                    self.notes.remove(note)
                    return note["params"]["diagnostics"]
            self.notes.append(self.receive())

    def latest(self, path):
        """The diagnostics of all edits so far: an answer to a request follows them."""
        self.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri(path)}})
        return [n["params"]["diagnostics"] for n in self.notes if n.get("params", {}).get("uri") == uri(path)][-1]

    def at(self, method, path, line, character, **more):
        """The result of a request about a place. Lines and characters count from 0."""
        return self.ask("textDocument/" + method, {"textDocument": {"uri": uri(path)},
                                                   "position": {"line": line, "character": character}, **more})["result"]

    def hints(self, path, lines=10000):
        return self.ask("textDocument/inlayHint", {"textDocument": {"uri": uri(path)}, "range": {
            "start": {"line": 0, "character": 0}, "end": {"line": lines, "character": 0}}})["result"]

    def close(self):
        """The exit status after `shutdown` and `exit`."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.server.wait(10)


def uri(path):
    return path if ":" in path else "file://" + path
