#!/usr/bin/env python3
"""Writes sessions of a client of `amp lsp` as inputs of fuzz_lsp. usage: lsp_corpus.py FOLDER JOB..."""
import json
import os
import sys

URI = "file:///nonexistent/job.amp"


def message(method, params, number=None):
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        body["id"] = number
    text = json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


def session(text):
    """Opens the text, and asks everything at two places."""
    lines = text.split("\n")
    out = [message("initialize", {"capabilities": {"general": {"positionEncodings": ["utf-8"]}}}, 0), message("initialized", {}),
           message("textDocument/didOpen", {"textDocument": {"uri": URI, "version": 1, "text": text}})]
    for i in (1, 2):
        line = i * len(lines) // 3
        place = {"textDocument": {"uri": URI}, "position": {"line": line, "character": len(lines[line]) * i // 3}}
        out += [message("textDocument/" + method, place, i) for method in ("hover", "definition", "completion", "signatureHelp", "references",
                                                                                "documentHighlight", "prepareRename")]
    out.append(message("textDocument/rename", {**place, "newName": "renamed"}, 3))
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": len(lines), "character": 0}}
    out += [*[message("textDocument/" + method, {"textDocument": {"uri": URI}, "range": everything}, 10)
              for method in ("inlayHint", "codeAction")],
            *[message("textDocument/" + method, {"textDocument": {"uri": URI}}, 11) for method in ("documentSymbol", "formatting")],
            message("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2},
                                               "contentChanges": [{"text": text[:len(text) // 2]}]}),
            message("textDocument/completion", {"textDocument": {"uri": URI}, "position": {"line": len(lines) // 2,
                                                                                          "character": 9}}, 12),
            message("textDocument/didClose", {"textDocument": {"uri": URI}}), message("shutdown", None, 13), message("exit", None)]
    return b"".join(out)


for job in sys.argv[2:]:
    with open(job, encoding="utf-8") as f:
        text = f.read()
    if len(text) < 800:
        with open(os.path.join(sys.argv[1], os.path.basename(job) + ".session"), "wb") as f:
            f.write(session(text))
