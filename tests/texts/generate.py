#!/usr/bin/env python3
"""amp infer --generate with a tokenizer: a small model learns a text and two answers, and writes them; what is refused.
usage: tests/texts/generate.py AMP"""
import array
import json
import os
import subprocess
import sys
import tempfile

from chats_lib import tokenizer

AMP = os.path.abspath(sys.argv[1])
JOB = """
const L = 32; const V = 620; const TOKENS = "tokenizer.json"
data chats() {
  %s
}
module Net(d: int = 64) {
  word = Embedding(V, d); place = Embedding(L, d); out = Linear(d, V); norm = LayerNorm(d)
  block = TransformerEncoderLayer(d, 4, 128, dropout=0.0, batch_first=true, norm_first=true)
  def forward(x) { return out(norm(block(word(x) + place(arange(x.size(1))), is_causal=true))) }
}
model net = Net()
optimizer opt = AdamW(net, lr=3e-3)
manual_seed(1)
train x, y in chats() with batch=2, steps=120 {
  minimize cross_entropy(net(x).flatten(0, 1), y.flatten(0, 1), ignore_index=-100) with opt
}
infer next(ids: i64[1, L]) { return net(ids) }
"""
CHATS = """ids, mask = jsonl("chats.jsonl", tokenizer=TOKENS, template="chatml", length=L + 1)
  return ids[:, :-1], where(mask[:, 1:], ids[:, 1:], -100).to(i64)"""
TEXT = """ids = text("a.txt", TOKENS, length=L + 1)
  return ids[:, :-1], ids[:, 1:].to(i64)"""
TWO = """return text("a.txt", TOKENS, length=L), text("a.txt", "other.json", length=L).to(i64)"""


def run(*command, status=0, says="", prints=None):
    done = subprocess.run([AMP, *command], env={**os.environ, "XDG_CACHE_HOME": os.getcwd() + "/cache"},
                          capture_output=True, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status and says in err and prints in (None, out), (command, done.returncode, out, err)


def train(data, lines, name):
    with open(name, "w", encoding="utf-8") as f:
        f.write(lines)
    with open("job.amp", "w", encoding="utf-8") as f:
        f.write(JOB % data)
    run("train", "-q", "--device", "cpu", "--save", "w", "job.amp")


def ask(prompt, *options, n="24", job="job.amp", **expected):
    run("infer", "-q", "--device", "cpu", "--weights", "w", "--temperature", "0", "--generate", n, "--prompt", prompt,
        *options, job, **expected)


def check_long():
    """A long text, of which only the last tokens are decoded again for each new one: the logits of each place are those of
    its next token. Characters of several tokens are at all distances from each other."""
    text = "".join(f"Zw\u00f6lf \U0001f600 {i} \u4f60\u597d, the dog\n" * (1 + i % 3) for i in range(6))
    with open("long.txt", "w", encoding="utf-8") as f:
        f.write(text)
    run("tokens", "-q", "--tokenizer", "tokenizer.json", "long.txt", "-o", "long.bin")
    with open("long.bin", "rb") as f:
        ids = array.array("H", f.read())
    with open("long.amp", "w", encoding="utf-8") as f:
        f.write(f"""dim S(max={len(ids)})
infer next(ids: i64[1, S]) {{
  next = tensor({[float(i) for i in ids[1:]] + [0.0]}).unsqueeze(1)
  return (embedding(arange(S), next) == arange(620).to(f32)).to(f32).unsqueeze(0) + 0.0 * ids.unsqueeze(2).to(f32)
}}
""")
    assert len(ids) > 200, len(ids)
    run("infer", "-q", "--no-cache", "--device", "cpu", "--temperature", "0", "--tokenizer", "tokenizer.json", "--generate",
        str(len(ids) - 1), "--prompt", "Z", "long.amp", prints=text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("tokenizer.json", "w", encoding="utf-8") as f:
            f.write(tokenizer("chatml"))
        train(CHATS, '{"prompt": "Name a bird.", "answer": "Zwölf \\ud83d\\ude00"}\n{"prompt": "Two?", "answer": "Yes, two."}\n',
              "chats.jsonl")
        ask("Name a bird.", "--chat", prints="Zw\u00f6lf \U0001f600\n")
        ask("Two?", "--chat", prints="Yes, two.\n")
        ask("Two?", "--chat", n="2", prints="Yes\n")
        ask("Two?", "--chat", "--stop", ", t", prints="Yes\n")  # two tokens
        ask("Name a bird.", "--chat", "--stop", "\u00f6l", prints="Zw\n")
        ask("Name a bird.", "--chat", "--stop", "\U0001f601", prints="Zw\u00f6lf \U0001f600\n")  # the same first bytes
        ask("Two?", "--chat", "--stop", b"\xff", status=2, says="--stop \\xff: byte 0 of the text, 0xff, is not UTF-8")
        own = "<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n{answer}<|im_end|>"
        ask("Two?", "--chat", "--template", own, "--tokenizer", "tokenizer.json", prints="Yes, two.\n")
        ask("Two?", "--chat", "--template", "llama3", status=3, says="has no token <|begin_of_text|>")
        ask("Two?", "--chat", "-D", "TOKENS=other.json", status=3, says="other.json: No such file")
        ask("Two?", "--template", "chatml", status=2, says="--template needs --chat")
        ask("Two?", "--tokenizer", "absent.json", status=3, says="absent.json: No such file")
        with open("bare.amp", "w", encoding="utf-8") as f:
            f.write(JOB % "return synthetic(2, [L], dtype=i64, low=0, high=V), synthetic(2, [L], dtype=i64, low=0, high=V)")
        ask("Two?", job="bare.amp", status=2, says="--tokenizer FILE makes tokens of it")
        ask("Two?", "--chat", job="bare.amp", status=2, says="--chat needs --tokenizer FILE")
        ask("Two?", "--chat", "--tokenizer", "tokenizer.json", job="bare.amp", status=2, says="say which template with --template")
        for name, text in (("tokenizer_config.json", json.dumps({"chat_template": "{{ '<|im_start|>' }}"})),
                           ("chat_template.jinja", "{{ '<|im_start|>' }}")):
            for known in (text, text.replace("im_start", "other")):
                with open(name, "w", encoding="utf-8") as f:
                    f.write(known)
                ask("Two?", "--chat", "--tokenizer", "tokenizer.json", job="bare.amp", **(
                    {"prints": "Yes, two.\n"} if known == text else {"status": 2, "says": "--template: chatml, llama3, "}))
            os.remove(name)
        with open("chat_template.jinja", "w", encoding="utf-8") as f:
            f.write("<|start_header_id|>")
        ask("Two?", "--chat", "--tokenizer", "tokenizer.json", job="bare.amp", status=3, says="has no token <|begin_of_text|>")
        ask("Two?", "--chat", prints="Yes, two.\n")  # the job's own template counts
        os.remove("chat_template.jinja")
        check_long()
        train(TEXT, "The dog and the cat sat on the mat and slept. " * 30, "a.txt")
        ask("The dog and", n="9", prints="The dog and the cat sat on the mat")
        ask("The dog and", "--stop", "the mat", n="9", prints="The dog and the cat sat on ")
        ask("The dog and", "--stop", "dog and", "--stop", "mad", n="9", prints="The dog and the cat sat on the mat")
        with open("two.amp", "w", encoding="utf-8") as f:
            f.write(JOB % TWO)
        ask("The dog", job="two.amp", status=2, says="do not name one tokenizer")
        with open("bytes.bin", "wb") as f:
            f.write(b"\1\0\2\0")
        run("infer", "-q", "--device", "cpu", "--weights", "w", "--generate", "1", "--prompt-file", "bytes.bin", "--temperature",
            "0", "job.amp")


if __name__ == "__main__":
    main()
