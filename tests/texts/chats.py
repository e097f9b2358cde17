#!/usr/bin/env python3
"""jsonl(): ids and masks beside those of transformers, and what is refused.
usage: tests/texts/chats.py AMPC"""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile

from chats_lib import CASES, RECORDS, chat, records_of, tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
AMPC = os.path.abspath(sys.argv[1])
with open(os.path.join(HERE, "fixtures", "chats.json"), encoding="utf-8") as f:
    EXPECTED = json.load(f)


def compile_job(arguments, cache):
    with open("job.amp", "w", encoding="utf-8") as f:
        f.write(f'data chats() {{ return jsonl("chats.jsonl", tokenizer="tokenizer.json", {arguments}) }}\n'
                "model net = Linear(8, 1)\noptimizer opt = SGD(net, lr=0.1)\n"
                "train ids, mask in chats() with batch=1 { minimize net(ids.to(f32) * mask.to(f32)).mean() with opt }\n")
    return subprocess.run([AMPC, "--check", "job.amp"], env={**os.environ, "XDG_CACHE_HOME": cache}, capture_output=True,
                          text=True, check=False)


def write(records, text=None):
    with open("chats.jsonl", "w", encoding="utf-8", newline="") as f:
        f.write(text if text is not None else "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records))


def ids_of(arguments):
    """The ids and the mask of each record."""
    with tempfile.TemporaryDirectory() as cache:
        run = compile_job(arguments, cache)
        assert run.returncode == 0, run.stderr
        [path] = glob.glob(cache + "/ampc/*.ids")
        with open(path, "rb") as f:
            data = f.read()
    magic, tokens, records, pad = struct.unpack("<8sqqq", data[-32:])
    assert magic == b"ampcids1"
    ids = struct.unpack(f"<{tokens}I", data[:4 * tokens])
    ends = struct.unpack(f"<{records}q", data[4 * tokens:-32])
    cut = [ids[a:b] for a, b in zip((0,) + ends, ends)]
    return [{"ids": [i & 0x7fffffff for i in r], "mask": [i >> 31 for i in r]} for r in cut], pad


def check_case(case):
    with open("tokenizer.json", "w", encoding="utf-8") as f:
        f.write(tokenizer(case))
    records = records_of(case)
    write([{"messages": r} for r in records])
    got, _ = ids_of(f'length=8, template="{case.split("_")[0]}"')
    assert len(got) == len(records)
    for record, one, wanted in zip(records, got, EXPECTED[case]):
        one = {k: one[k] for k in wanted}
        assert one == wanted, f"{case}: {record}\n  got      {one}\n  expected {wanted}"


def refuses(text, records, arguments='length=8, template="chatml"', raw=None):
    write(records, raw)
    with tempfile.TemporaryDirectory() as cache:
        run = compile_job(arguments, cache)
        left = os.listdir(cache + "/ampc") if os.path.exists(cache + "/ampc") else []
    assert run.returncode == 3 and text in run.stderr, f"expected {text!r}, got {run.returncode}: {run.stderr}"
    assert not left, left


def check_refused():
    with open("tokenizer.json", "w", encoding="utf-8") as f:
        f.write(tokenizer("chatml"))
    good = {"prompt": "a", "answer": "b"}
    user, answer = chat("a", "b")
    refuses("chats.jsonl:3: column", [], raw='{"prompt": "a", "answer": "b"}\n\n{"prompt": \n')
    refuses("chats.jsonl:1: column 5: ", [], raw="plain text\n")
    refuses("chats.jsonl:1: the line is no object", [], raw="[1]\n")
    refuses("chats.jsonl:1: column", [], raw='{"prompt": "a", "prompt": "b", "answer": "c"}\n')
    refuses("chats.jsonl has no records", [], raw="\n \n")
    refuses('chats.jsonl:2: the key "text" is not known', [good, {"text": "a"}])
    refuses('the key "input" is not known', [{"instruction": "a", "input": "", "output": "b"}])
    refuses('the key "id" is not known beside "messages"', [{"id": 1, "messages": [user, answer]}])
    refuses('the record has no "answer"', [{"prompt": "a"}])
    refuses('the record has no "prompt"', [{"answer": "a"}])
    refuses('"question" is a second prompt', [{**good, "question": "c"}])
    refuses('"answer" is no text', [{"prompt": "a", "answer": 1}])
    refuses("chats.jsonl:1: an answer is empty", [{"prompt": "a", "answer": ""}])
    refuses('the role "tool" is not known; known: system, user, assistant', [{"messages": [{"role": "tool", "content": "x"}]}])
    refuses('message 1 is not {"role": TEXT, "content": TEXT}', [{"messages": [{"role": "user"}]}])
    refuses('message 2 is not {"role": TEXT, "content": TEXT}', [{"messages": [user, {**answer, "content": [{}]}]}])
    refuses("no message is the assistant's", [{"messages": [user]}])
    refuses('"messages" is no list', [{"messages": "a"}])
    refuses("a message of the role system is not the first one", [{"messages": [user, {"role": "system", "content": "x"}]}])
    refuses("tokenizer.json has no token <|begin_of_text|>, which the template llama3 needs", [good],
            'length=8, template="llama3"')
    refuses('template "llama" is none of chatml, llama3, gemma, mistral, plain', [good], 'length=8, template="llama"')
    refuses("has no token <|user|>, which your template needs", [good], 'length=8, template="<|user|>{prompt}{answer}"')
    refuses("pad: the tokenizer has no token <pad>", [good], 'length=8, template="chatml", pad="<pad>"')
    for own in ("{prompt}{answer}", "{prompt}{answer}User:", "{prompt}{answer}<no>"):
        refuses('jsonl needs pad="TOKEN"', [good], f'length=8, template="{own}"')
    with open("tokenizer.json", "w", encoding="utf-8") as f:
        f.write(tokenizer("gemma"))
    refuses("in template gemma messages of user and assistant take turns", [{"messages": [user, user]}],
            'length=8, template="gemma"')
    refuses("template gemma has no role system", [{"system": "x", **good}], 'length=8, template="gemma"')
    os.remove("tokenizer.json")
    refuses("tokenizer.json: No such file", [good])


def check_own():
    """A template of the job; names of keys; special tokens in contents are text."""
    with open("tokenizer.json", "w", encoding="utf-8") as f:
        f.write(tokenizer("chatml"))
    write([{"question": "How are you?", "response": "Fine, thanks.", "id": 7}, {"messages": RECORDS[1]}])
    own = '<|im_start|>user\\n{prompt}<|im_end|>\\n<|im_start|>assistant\\n{answer}<|im_end|>\\n'
    got, pad = ids_of(f'length=8, template="{own}", ignore=["id"]')
    assert got == EXPECTED["chatml"][:2], got
    assert pad == got[0]["ids"][-2], "the end of the turn fills up"
    write([{"prompt": "a<|im_end|>b", "answer": "<|im_start|>"}])
    [one], _ = ids_of('length=8, template="chatml"')
    assert [one["ids"].count(pad), one["mask"][-2:]] == [2, [1, 0]], "a special token in a content is text"


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in CASES:
            check_case(case)
        check_own()
        check_refused()


if __name__ == "__main__":
    main()
