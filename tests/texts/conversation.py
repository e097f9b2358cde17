#!/usr/bin/env python3
"""amp chat: a small model learns conversations, whose later answers depend on earlier ones; commands; what is refused.
amp infer --prompts answers the same questions.
usage: tests/texts/conversation.py AMP"""
import json
import os
import signal
import subprocess
import sys
import tempfile

from chats_lib import chat, tokenizer

AMP = os.path.abspath(sys.argv[1])
JOB = """
const L = 64; const V = 620; const TOKENS = "tokenizer.json"
dim S(max=L)
data chats() {
  ids, mask = jsonl("chats.jsonl", tokenizer=TOKENS, template="chatml", length=L + 1)
  return ids[:, :-1], where(mask[:, 1:], ids[:, 1:], -100).to(i64)
}
module Net(d: int = 64) {
  word = Embedding(V, d); place = Embedding(L, d); out = Linear(d, V); norm = LayerNorm(d)
  block = TransformerEncoderLayer(d, 4, 128, dropout=0.0, batch_first=true, norm_first=true)
  more = TransformerEncoderLayer(d, 4, 128, dropout=0.0, batch_first=true, norm_first=true)
  def forward(x) {
    return out(norm(more(block(word(x) + place(arange(x.size(1))), is_causal=true), is_causal=true)))
  }
}
model net = Net()
optimizer opt = AdamW(net, lr=3e-3)
manual_seed(1)
train x, y in chats() with batch=3, steps=150 {
  minimize cross_entropy(net(x).flatten(0, 1), y.flatten(0, 1), ignore_index=-100) with opt
}
infer next(ids: i64[1, S]) { return net(ids) }
infer fixed(ids: i64[1, 32]) { return net(ids) }
infer mean(ids: i64[1, S]) { return net(ids) + net(ids).mean(1, keepdim=true) }
"""
ENDLESS = """
const V = 620
dim S(max=20000)
infer next(ids: i64[1, S]) { return ids.unsqueeze(2).to(f32) * 0.0 + (arange(V) == 40).to(f32) }
"""
BIRD, TWO = "Zw\u00f6lf \U0001f600\n", "Yes, two.\n"
RECORDS = [chat("Name a bird.", BIRD[:-1], "Again?", BIRD[:-1]), chat("Two?", TWO[:-1], "Again?", TWO[:-1]),
           [{"role": "system", "content": "Loud"}] + chat("Two?", "YES")]


def talk(lines, *options, block="next", job="job.amp", status=0, says="", prints=None):
    weights = ["--weights", "w"] if job == "job.amp" else []
    done = subprocess.run([AMP, "chat", "--device", "cpu", *weights, "--block", block, "--temperature", "0", *options, job],
                          env={**os.environ, "XDG_CACHE_HOME": os.getcwd() + "/cache"}, input=lines, capture_output=True,
                          text=True, check=False)
    good = done.returncode == status and says in done.stderr and prints in (None, done.stdout)
    assert good, (lines, options, done.returncode, done.stdout, done.stderr)
    return done


def check_answers():
    talk("Two?\nAgain?\n", "-q", prints=TWO + TWO)
    talk("Name a bird.\nAgain?\n/reset\nTwo?\nAgain?\n/reset\nName a bird.\n", "-q", prints=BIRD + BIRD + TWO + TWO + BIRD)
    talk("\n  \nTwo?", "-q", prints=TWO)
    talk("Two?\n", says="infer `next` of job.amp, a context of 64 tokens; /help lists the commands\n")
    talk("Two?\n", "-v", says=" a second)\n")
    assert "a second" not in talk("Two?\n").stderr
    talk("Two?\n/quit\nTwo?\n", "-q", prints=TWO)
    talk("Two?\nAgain?\n", "--stop", ", t", "-q", prints="Yes\nYes\n")
    talk("Two?\nAgain?\n", "--max-tokens", "2", prints="Yes\nYes\n", says="the answer ends after 2 tokens; --max-tokens N")


def check_system():
    talk("Two?\n", "--system", "Loud", "-q", prints="YES\n")
    talk("Two?\n/reset\nTwo?\n/system\nTwo?\n/system Loud\nTwo?\n", "--system", "Loud", "-q", prints=f"YES\nYES\n{TWO}YES\n")
    own = "<|im_start|>user\r{prompt}<|im_end|>\r<|im_start|>assistant\r{answer}<|im_end|>\r"
    talk("Two?\nAgain?\n", "--template", own, "-q", prints=TWO + TWO)
    talk("Two?\n/system Loud\nAgain?\n", "--template", own, "-q", status=5, prints=TWO + TWO,
         says="amp chat: template of the job has no role system")
    talk("", "--template", own, "--system", "Loud", status=3, says="template of the job has no role system: put the text into")


def check_commands():
    talk("/restart\nTwo?\n", "-q", status=5, prints=TWO, says="no command /restart; known: /reset, /system, /help, /quit\n")
    talk(" /Two?\n", "-q")
    assert "/reset    forgets the conversation\n" in talk("/help\n").stdout
    done = talk("Two?\n" * 9, "-q", status=5, says="the context is full: it has room for 64 tokens, the conversation has ")
    assert done.stdout.startswith(TWO * 2) and "/reset forgets the conversation\n" in done.stderr, done
    assert "7 lines of the input were refused" in done.stderr, done.stderr
    talk("Two?\n" * 9 + "/reset\nName a bird.\n", "-q", status=5, prints=done.stdout + BIRD)
    talk("Two? " * 40 + "\n", "-q", status=5, prints="", says="--context N makes room for more")
    talk("Two?\n", "--context", "100", "-q", prints=TWO, says="warning: --context 100: the dim of the job ends at 64 tokens\n")
    done = talk("Two?\n", "--context", "20", prints="Yes,\n", says="a context of 20 tokens; /help")
    assert "the context of 20 tokens is full, so the answer ends here" in done.stderr, done.stderr
    assert talk("Two?\n/reset\nTwo?\n/system Loud\nTwo?\n").stderr.endswith(
        "\na new conversation, without a system message\na new conversation, with a system message\n")
    assert talk("/reset\n/system Loud\n", "-q").stderr == ""
    endless = ["--tokenizer", "tokenizer.json", "--template", "chatml", "--context", "200", "--max-tokens", "500", "-q"]
    done = talk("Two?\n/reset\nTwo?\n", *endless, job="endless.amp",
                says="the context of 200 tokens is full, so the answer ends here; /reset forgets the conversation\n")
    first, second, end = done.stdout.split("\n")
    assert first == second and len(set(first)) == 1 and 150 < len(first) < 200 and not end, done.stdout


def infer(*options, status=0, says=""):
    done = subprocess.run([AMP, "infer", "-q", "--device", "cpu", "--no-onednn", "--weights", "w", "--block", "next", "--generate", "24",
                           "--temperature", "0", *options, "job.amp"], capture_output=True, text=True, check=False)
    assert done.returncode == status and says in done.stderr, (options, done.returncode, done.stdout, done.stderr)
    return done.stdout


def check_prompts():
    """amp infer --prompts: questions, and conversations up to a question."""
    asked = [[], chat("Name a bird.", BIRD[:-1], "Again?"), chat("Two?", TWO[:-1], "Again?"), RECORDS[2][:2], chat("Two?")]
    with open("asked.jsonl", "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"messages": m} if m else {"prompt": "Name a bird.", "answer": "Zw"}) + "\n" for m in asked)
    for batch in "1", "3", "8":
        results = [json.loads(line) for line in infer("--chat", "--prompts", "asked.jsonl", "--batch", batch).splitlines()]
        assert [r["text"] + "\n" for r in results] == [BIRD, BIRD, TWO, "YES\n", TWO], results
        assert [r.get("messages", []) for r in results] == asked and results[0]["prompt"] == "Name a bird.", results
        assert {r["end"] for r in results} == {"stop"} and [list(r)[1:] for r in results] == [["text", "tokens", "end"]] * 5
    assert [json.loads(line)["text"] for line in infer("--chat", "--prompts", "asked.jsonl", "--stop", ", t").splitlines()][2] == "Yes"
    with open("lines.txt", "w", encoding="utf-8") as f:
        f.write("Two?\nName a bird.")
    assert [json.loads(line)["text"] + "\n" for line in infer("--chat", "--prompts", "lines.txt").splitlines()] == [TWO, BIRD]
    results = [json.loads(line)["text"] for line in infer("--prompts", "lines.txt").splitlines()]
    for line, text in zip(("Two?", "Name a bird."), results):
        assert infer("--prompt", line) == line + text, (line, text)
    wrong = [({}, 'expected {"prompt": TEXT} or {"messages": [..]}'), ({"messages": []}, "the last message must be the user's"),
             ({"messages": chat("Two?", TWO)}, "the last message must be the user's"),
             ({"messages": chat("Two?", TWO) + chat("a") * 2}, "the message before the last one must be the assistant's"),
             ({"messages": [{"role": "robot", "content": "a"}] + chat("a", "b", "c")}, 'the role "robot" is not known')]
    for record, says in wrong:
        with open("wrong.jsonl", "w", encoding="utf-8") as f:
            f.write('{"prompt": "Two?"}\n' + json.dumps(record))
        assert not infer("--chat", "--prompts", "wrong.jsonl", status=3, says="wrong.jsonl:2: " + says)


def check_refused():
    talk("", "--template", "{prompt}: {answer}", status=2, says="the template has no token that ends an answer")
    talk("", block="fixed", status=2, says="declare `dim S(max=1024)`, and write `infer fixed(ids: i64[1, S])`")
    talk("", block="mean", status=1, says="E614")
    talk("", "--temperature", "0", "--top-k", "3", "-q", says="warning: --top-k: no effect with --temperature 0")
    talk("", job="endless.amp", status=2, says="a conversation needs --tokenizer FILE")
    talk("Two?\n", "--tokenizer", "tokenizer.json", "--template", "chatml", "-D", "V=600", job="endless.amp", status=5,
         says="token 0 of the text is 605; infer `next` takes numbers below 600")
    talk("", "--tokenizer", "tokenizer.json", job="endless.amp", status=2, says="say which template with --template: chatml, llama3,")


def check_interrupt():
    """Ctrl-C ends an answer, and the conversation goes on."""
    with subprocess.Popen([AMP, "chat", "-q", "--temperature", "0", "--device", "cpu", "--tokenizer", "tokenizer.json", "--template", "chatml",
                           "--context", "20000", "--max-tokens", "20000", "endless.amp"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        p.stdin.write(b"Two?\n")
        p.stdin.flush()
        assert p.stdout.read(3)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(b"/help\n")
        assert p.returncode == 0 and b"\n/reset" in out and out.index(b"\n") < 19000, (p.returncode, out[-200:])


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in (("tokenizer.json", tokenizer("chatml")), ("job.amp", JOB), ("endless.amp", ENDLESS),
                           ("chats.jsonl", "".join(json.dumps({"messages": r}) + "\n" for r in RECORDS))):
            with open(name, "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run([AMP, "train", "-q", "--device", "cpu", "--save", "w", "job.amp"], check=True)
        for check in (check_answers, check_system, check_commands, check_prompts, check_refused, check_interrupt):
            check()


if __name__ == "__main__":
    main()
