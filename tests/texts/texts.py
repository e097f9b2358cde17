#!/usr/bin/env python3
"""text(): the ids of amp tokens, in the windows of tokens(); the cache; what is refused; the loss of answers beside
PyTorch's; an emitted program.
usage: tests/texts/texts.py AMPC AMP"""
import glob
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from chats_lib import FIXTURES, RECORDS, tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
AMPC, AMP = (os.path.abspath(p) for p in sys.argv[1:3])
MODEL = """
model net = Sequential(Embedding(800, 8), Linear(8, 800))
optimizer opt = AdamW(net, lr=0.01)
train x, y in corpus("a*.txt") with batch=2, epochs=2 { minimize cross_entropy(net(x).flatten(0, 1), y.flatten(0, 1)) with opt }
eval x, y in corpus("a*.txt") with batch=3 { metric l = cross_entropy(net(x).flatten(0, 1), y.flatten(0, 1)) }
"""


def run(*command, status=0, says="", **more):
    env = {**os.environ, "XDG_CACHE_HOME": os.getcwd() + "/cache"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, **more)
    assert done.returncode == status and says in done.stderr + done.stdout, (command, done.returncode, done.stderr, says)
    return done


def write(name, text):
    with open(name, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def job(arguments, source="text", model=MODEL, name="job.amp"):
    write(name, f"data corpus(path: str) {{ ids = {source}(path, {arguments}, length=17)\n"
                f"  return ids[:, :-1], ids[:, 1:].to(i64) }}{model}")


def cached():
    return sorted(glob.glob("cache/ampc/*.ids"))


def ids_of(arguments):
    shutil.rmtree("cache", ignore_errors=True)
    job(arguments)
    run(AMPC, "--check", "job.amp")
    [path] = cached()
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<q", data[-24:-16])[0]
    return list(struct.unpack(f"<{n}i", data[:4 * n]))


def tokens_of(*options):
    run(AMP, "tokens", "--force", "--format", "i32", "-o", "ids.bin", *options)
    with open("ids.bin", "rb") as f:
        data = f.read()
    return list(struct.unpack(f"<{len(data) // 4}i", data))


def check_ids():
    with open(os.path.join(FIXTURES, "texts.json"), encoding="utf-8") as f:
        texts = [t for t in json.load(f) if isinstance(t, str)]
    for i, text in enumerate(["".join(texts[k::3]) for k in range(3)]):
        write(f"a{i}.txt", text + "\n<|end|>\n x \r\n\nlast")
    files = sorted(glob.glob("a*.txt"))
    for name in ("qwen.json", "llama2.json", "spm_unigram.model"):
        shutil.copy(os.path.join(FIXTURES, name), name)
        end = "</s>" if name != "qwen.json" else "<|endoftext|>"
        for arguments, options in (("", []), (f', separator="{end}"', ["--separator", end]), (", lines=true", ["--lines"]),
                                   (", plain=true", ["--plain"]), (", special=false", ["--no-special"])):
            assert ids_of(f'tokenizer="{name}"{arguments}') == tokens_of("--tokenizer", name, *options, *files), arguments
    plain = ids_of('tokenizer="qwen.json"')
    with open("a0.txt", "rb") as f:
        text = f.read()
    write("a0.txt", gzip.compress(text))
    assert ids_of('tokenizer="qwen.json"') == plain, "a file that is gzipped"
    write("a0.txt", text)


def check_windows():
    """The source reads the same windows as tokens() of the same ids: the same weights, bit for bit."""
    tokens_of("--tokenizer", "qwen.json", *sorted(glob.glob("a*.txt")))
    job('tokenizer="qwen.json"')
    job('format="i32"', "tokens", MODEL.replace("a*.txt", "ids.bin"), "raw.amp")
    weights = []
    for name in ("job.amp", "raw.amp"):
        run(AMP, "train", "-q", "--device", "cpu", "--seed", "1", "--save", "w", name)
        run(AMP, "weights", "--force", "w", "weights")
        with open("weights", "rb") as f:
            weights.append(f.read())
    assert weights[0] == weights[1]
    run(AMP, "train", "-q", "--device", "cpu", "--seed", "1", "--steps", "3", "--save", "half", "job.amp")
    run(AMP, "train", "-q", "--device", "cpu", "--resume", "half", "--save", "half", "job.amp")
    run(AMP, "train", "-q", "--device", "cpu", "--seed", "1", "--save", "w", "job.amp")
    with open("w", "rb") as a, open("half", "rb") as b:
        assert a.read() == b.read(), "a resumed run"


def check_program():
    run("sh", "-c", f'"{AMPC}" -o job.c job.amp && $("{AMPC}" --build-line -o job.c job.amp | sed "s/-O3/-O1/")')
    lost = run("./job", "-q", "--seed", "1", "--device", "cpu").stdout
    assert lost == run(AMP, "train", "-q", "--seed", "1", "--device", "cpu", "job.amp").stdout
    assert "libpcre2" in run("ldd", "job").stdout
    run("sh", "-c", f'"{AMPC}" -o raw.c raw.amp && $("{AMPC}" --build-line -o raw.c raw.amp | sed "s/-O3/-O1/")')
    assert "libpcre2" not in run("ldd", "raw").stdout, "a program that reads no text needs no tokenizers"
    before = cached()
    with open("a0.txt", "ab") as f:
        f.write(b" and some more words, that nobody has read before" * 20)
    run("./job", "-q", "--device", "cpu", status=3, says="compile it again")
    assert len(cached()) == len(before) + 1, "a file that has changed is tokenized again"


def check_cache():
    """A large file is tokenized in pieces, by one process at a time, once."""
    lines = "".join(f"The {i} cats <|end|> don't\n\n   sit on 17 mats, \u00fcber {'x' * (i % 40)}.\n" for i in range(500))
    write("a0.txt", lines * ((17 << 20) // len(lines)))
    for path in glob.glob("a[1-9]*.txt"):
        os.remove(path)
    shutil.rmtree("cache")
    job('tokenizer="qwen.json"')
    env = {**os.environ, "XDG_CACHE_HOME": os.getcwd() + "/cache"}
    both = [subprocess.Popen([AMPC, "--check", "job.amp"], env=env, stderr=subprocess.PIPE, text=True) for _ in "ab"]
    said = sorted(p.communicate()[1] for p in both)
    assert [p.returncode for p in both] == [0, 0], said
    assert said[0].startswith("note: another process is tokenizing") and said[1].startswith("note: tokenizing a*.txt"), said
    assert len(os.listdir("cache/ampc")) == 1
    assert run(AMPC, "--check", "job.amp").stderr == ""
    for name in ("qwen.json", "llama2.json"):  # the second one changes the ids at each cut, so the file is not cut
        shutil.rmtree("cache")
        job(f'tokenizer="{name}"')
        run(AMPC, "--check", "job.amp")
        with open(cached()[0], "rb") as f:
            ids = f.read()[:-32]
        tokens_of("--tokenizer", name, "a0.txt")
        with open("ids.bin", "rb") as f:
            assert ids == f.read(), f"pieces with {name}"


def check_refused():
    shutil.rmtree("cache")
    write("a0.txt", b"good\nbad \xff\n")
    job('tokenizer="qwen.json"')
    run(AMPC, "--check", "job.amp", status=3, says="a0.txt: byte 9 of the text, 0xff, is not UTF-8")
    write("a0.txt", b"The cat sat.\n" * (24 << 20 >> 4) + b"\xff")
    run(AMPC, "--check", "job.amp", status=3, says="on: byte")
    write("a0.txt", b"good\nbad \xff\n")
    job('tokenizer="qwen.json", lines=true')
    run(AMPC, "--check", "job.amp", status=3, says="a0.txt:2: byte 4 of the text")
    write("a0.txt", b"")
    os.truncate("a0.txt", 300 << 20)
    run(AMPC, "--check", "job.amp", status=3, says="a0.txt: the line is longer than 256 MiB")
    write("a0.txt", "short")
    run(AMPC, "--check", "job.amp", status=3, says="tokens, less than one window of 17")
    job('tokenizer="qwen.json", separator="<none>"')
    run(AMPC, "--check", "job.amp", status=3, says="separator: the tokenizer has no token <none>")
    job('tokenizer="none.json"')
    run(AMPC, "--check", "job.amp", status=3, says="none.json: No such file")
    write("broken.json", "{")
    job('tokenizer="broken.json"')
    run(AMPC, "--check", "job.amp", status=3, says="broken.json, line 1")
    job('tokenizer="qwen.json"', model=MODEL.replace("a*.txt", os.getcwd() + "/a0.txt"))
    run(AMPC, "--check", "job.amp", status=3, says="so `tokenizer` must begin with / too")
    job('tokenizer="qwen.json", samples=10', model=MODEL.replace("a*.txt", "absent.txt"))
    run(AMPC, "--check", "job.amp")
    env = {**os.environ, "HOME": "/proc", "XDG_CACHE_HOME": "/proc"}
    job('tokenizer="qwen.json"')
    done = subprocess.run([AMPC, "--check", "job.amp"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "set XDG_CACHE_HOME to one that can be written" in done.stderr, done.stderr


def check_loss():
    """The loss counts the answers only, and is PyTorch's."""
    write("tokenizer.json", tokenizer("chatml"))
    write("chats.jsonl", "".join(json.dumps({"messages": r}) + "\n" for r in RECORDS))
    write("loss.amp", """
data chats() {
  ids, mask = jsonl("chats.jsonl", tokenizer="tokenizer.json", template="chatml", length=33)
  return ids[:, :-1], where(mask[:, 1:], ids[:, 1:], -100).to(i64)
}
model net = Linear(1, 1)
optimizer opt = SGD(net, lr=0.0)
train x, y in chats() with batch=7, epochs=1 {
  logits = sin((x + 1).to(f32).unsqueeze(-1) * arange(620).to(f32) * 0.01)
  minimize cross_entropy(logits.flatten(0, 1), y.flatten(0, 1), ignore_index=-100) + 0.0 * net(tensor([[1.0]])).mean() with opt
}
""")
    done = run(AMP, "train", "--device", "cpu", "--json", "loss.amp", says="5 of 7 records have more than 33 tokens and are cut")
    loss = [json.loads(line)["metrics"]["loss"] for line in done.stdout.splitlines() if '"metrics"' in line][0]
    with open(os.path.join(HERE, "fixtures", "loss.json"), encoding="utf-8") as f:
        wanted = json.load(f)
    assert abs(loss - wanted) < 2e-5 * wanted, (loss, wanted)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for check in (check_ids, check_windows, check_program, check_cache, check_refused, check_loss):
            check()


if __name__ == "__main__":
    main()
