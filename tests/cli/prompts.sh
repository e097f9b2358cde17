#!/usr/bin/env bash
# amp infer --prompts: a text does not depend on how many grow beside it, and is that of --prompt. Results are lines of
# JSON in the order of the prompts, whatever the tokens are. Stop strings, texts that outgrow the context, a batch as a
# dim; what is refused.
#   prompts.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
sed "s|^const TEXT = \"[^\"]*\"|const TEXT = \"$source_dir/examples/chat/main.c\"|" "$source_dir/examples/chat/chat.amp" >chat.amp
passes "a training" "$amp" train -q --device cpu --set train.steps=60 --save w.safetensors chat.amp
infer() { timeout 100 "$amp" infer --device cpu --no-onednn --weights w.safetensors "$@"; }

printf '%s\n' 'int main(' 'a' 'for (int k = 0; k < TEXTS && !status; k++) status = chat_next_next(text[k], byte, n, logits);' \
  'if (status) "quoted\"' 'a' 'const' 'ü' $'tab\tab' >prompts.txt
printf 'the last line has no end' >>prompts.txt
python3 - <<'PY'
import json
with open("prompts.jsonl", "w", encoding="utf-8") as to:
    for i, line in enumerate(open("prompts.txt", encoding="utf-8").read().split("\n")):
        to.write(json.dumps({"id": i, "prompt": line}) + "\n" * (1 + (i == 3)))
PY

# ---- the same texts ---------------------------------------------------------------------------------
# same_texts NAME TOKENS OPTIONS...: each batch writes the same, and what --prompt writes if no number is random
same_texts() {
  local name=$1 tokens=$2
  shift 2
  passes "$name" infer --generate "$tokens" --prompts prompts.txt --batch 3 "$@" chat.amp
  cp out three
  for batch in 1 8 50; do
    passes "$name: $batch" infer -q --generate "$tokens" --prompts prompts.txt --batch $batch "$@" chat.amp
    cp out other
    same "$name: $batch at a time" three other
  done
  while IFS= read -r line || [ "$line" ]; do
    infer -q --generate "$tokens" --prompt "$line" "$@" chat.amp | tail -c +$(($(printf %s "$line" | wc -c) + 1)) >one
    printf '\0' >>one
    cat one
    [[ $* == *"--temperature 0 "* || $* == *"--temperature 0" ]] || break # the others draw other numbers
  done <prompts.txt >alone
  passes "$name: beside --prompt" python3 - "$tokens" "$@" <<'PY'
import json
import sys
tokens, options = int(sys.argv[1]), sys.argv[2:]
prompts = open("prompts.txt", encoding="utf-8").read().split("\n")
alone = open("alone", "rb").read().split(b"\0")
results = [json.loads(line) for line in open("three", "rb").read().decode().splitlines()]
assert [list(r) for r in results] == [["prompt", "text", "tokens", "end"]] * len(prompts), results
assert [r["prompt"] for r in results] == prompts
for i, r in enumerate(results):
    random = "0" not in options[1:2] and i
    assert random or r["text"] == alone[i].decode(errors="replace"), (i, r["text"], alone[i])
    assert r["end"] == ("length" if r["tokens"] == tokens else "stop"), r
    assert "--stop" in options or r["tokens"] == tokens, r
    assert not set(r["text"]) & {options[k + 1] for k, o in enumerate(options) if o == "--stop"}, r
if "--stop" in options:
    assert {r["end"] for r in results} == {"length", "stop"} and len({r["tokens"] for r in results}) > 2, results
if "1.5" in options:
    assert results[1]["text"] != results[4]["text"], "the draws of equal prompts"
PY
}
same_texts "the likeliest" 30 --temperature 0
same_texts "draws" 30 --temperature 1.5 --seed 3
same_texts "stop strings" 8 --temperature 0.7 --seed 3 --stop e --stop '('
same_texts "longer than the context" 60 --temperature 0 --repetition-penalty 1.1
passes "how fast" infer --generate 60 --prompts prompts.txt chat.amp
grep -Eq '^9 prompts: 540 tokens in [0-9.]+ s \([0-9.]+ a second\)$' err || failed "how fast"
grep -q '^the text will have 152 tokens and infer `next` reads at most 128' err || failed "longer than the context: no line"

passes "records" infer -q --generate 30 --temperature 1.5 --seed 3 --prompts prompts.jsonl chat.amp
cp out records
passes "lines" infer -q --generate 30 --temperature 1.5 --seed 3 --prompts prompts.txt chat.amp
cp out lines
[ -s err ] && failed "-q says something"
same "records and lines" records lines
passes "a pipe, with \\r" infer -q --generate 30 --temperature 1.5 --seed 3 --prompts <(sed 's/$/\r/' prompts.txt) chat.amp
cp out pipe
same "a pipe, with \\r" lines pipe
sed 's/^infer next.*/dim N(max=8)\ninfer next(ids: i64[N, S]) -> float[N, S, 256] { return net(ids) }/' chat.amp >many.amp
passes "a batch that is a dim" infer -q --generate 30 --temperature 1.5 --seed 3 --prompts prompts.txt many.amp
cp out many
same "a batch that is a dim" lines many
printf 'infer next(ids: i64[1, S]) { i = arange(256); return 9.0 * (i == 128 + ids.unsqueeze(2)) + 8.0 * (i == ids.unsqueeze(2) - 128) }\ndim S(max=50)\n' >bytes.amp
printf 'a\n~\n\0\n' >bytes.txt
passes "bytes that are no text" timeout 100 "$amp" infer -q --device cpu --generate 3 --temperature 0 --prompts bytes.txt bytes.amp
printf '{"prompt": "a", "text": "\\ufffda\\ufffd", "tokens": 3, "end": "length"}\n%s\n%s\n' \
  '{"prompt": "~", "text": "\ufffd~\ufffd", "tokens": 3, "end": "length"}' \
  '{"prompt": "\u0000", "text": "\ufffd\u0000\ufffd", "tokens": 3, "end": "length"}' >want
cp out bytes
same "bytes that are no text" want bytes
echo 'dim S(max=50); infer next(ids: i64[1, S]) {
  x = ids.unsqueeze(2); return 9.0 * (arange(256) == where(x == 97, 237, where(x == 237, 160, where(x == 160, 128, 97))))
}' >half.amp
passes "half a pair of UTF-16" timeout 100 "$amp" infer -q --device cpu --generate 4 --temperature 0 --prompts <(echo a) half.amp
grep -qF '"text": "\ufffd\ufffd\ufffda"' out || failed "half a pair of UTF-16"
SHELL=$BASH script -qec "timeout 100 $amp infer --device cpu --weights w.safetensors --generate 30 --prompts prompts.txt chat.amp >/dev/null" /dev/null >out 2>err </dev/null
tr '\r' '\n' <out | grep -q '0 of 9 prompts: 8 tokens in ' || failed "no progress on a terminal"

# ---- what is refused ---------------------------------------------------------------------------------
wrong() { # wrong NAME STATUS PATTERN TEXT OPTIONS...: TEXT in the file x.txt, or x.jsonl if it begins with {
  local name=$1 status=$2 says=$3 text=$4 file=x.txt
  shift 4
  [ "${text:0:1}" = '{' ] && file=x.jsonl
  printf "$text" >$file
  refuses "$name" "$status" "$says" infer --generate 5 --prompts $file "$@" chat.amp
}
wrong "an empty line" 3 'x.txt:2: the prompt is empty' 'a\n\nb\n'
wrong "a long prompt" 2 'x.txt:3: the prompt has 129 tokens; infer `next` reads at most 128' "a\nb\n$(printf '%129s' a)\n"
[ -s out ] && failed "a long prompt: the first ones are continued"
wrong "no UTF-8" 3 'x.txt:1: the line is not UTF-8' 'a\xff\n'
wrong "both" 3 'x.jsonl:1: the record has both "prompt" and "messages"' '{"prompt": "a", "messages": []}'
wrong "an empty record" 3 'x.jsonl:1: the prompt is empty' '{"prompt": ""}'
refuses "tokens" 2 'x.bin: --prompts reads text; only --prompt-file' infer --generate 5 --prompts x.bin chat.amp
wrong "nothing" 3 'x.txt has no prompts' ''
wrong "no text" 3 'x.jsonl:2: expected {"prompt": TEXT}$' '{"prompt": "a"}\n{"prompt": 1}\n'
wrong "no JSON" 3 'x.jsonl:1: column 14: ' '{"prompt": "a"\n'
wrong "messages" 2 'x.jsonl:1: "messages" need --chat' '{"messages": []}'
wrong "several at once" 2 'prompts cannot be combined with --no-cache' a --no-cache
wrong "two sources" 2 'prompts cannot be combined with --prompt' a --prompt b
wrong "too many at a time" 2 'batch 2000: at most 1024 texts' a --batch 2000
refuses "no file" 3 'cannot read gone' infer --generate 5 --prompts gone chat.amp
refuses "a batch of what" 2 'batch needs --prompts' infer --generate 5 --batch 2 --prompt a chat.amp
sed -i 's/^infer next(ids: i64\[1, S\]).*/infer next(ids: i64[1, 32]) { return net(ids) }/' chat.amp
wrong "one length" 2 'declare `dim S.max=1024.`, and write `infer next.ids: i64.1, S..`' a
sed -i 's/^infer next.*/infer next(ids: i64[1, S]) { return net(ids) * 1e30 * 1e30 }/' chat.amp
wrong "not finite" 5 'x.txt:1: the logits after token 0 are not finite' 'a\nb\n'
# "<": a text that comes to it has no further token
echo 'dim S(max=64); infer next(ids: i64[1, S]) {
  y = (arange(64) == ids.unsqueeze(2) + 1) * 50.0; return y / where(ids == 60, 0.0, 1.0).unsqueeze(2)
}' >ends.amp
printf '!\n9\n#\n$\n' >ends.txt
for batch in 1 2 4; do
  refuses "one text fails, $batch at a time" 5 'ends.txt:2: the logits after token 3 are not finite' \
    timeout 100 "$amp" infer -q --device cpu --no-onednn --generate 20 --temperature 0 --prompts ends.txt --batch $batch ends.amp
  [ "$(grep -c '"tokens": 20, "end": "length"' out)" = 3 ] || failed "one text fails: the others"
  grep -qF '{"prompt": "9", "text": ":;<", "tokens": 3, "end": "error"}' out || failed "one text fails: its line"
done
echo 'dim S(max=64); infer next(ids: i64[1, S]) {
  x = (arange(160).to(f32) * 0.25).view([40, 4])[ids]; return x.sum(2, keepdim=true) * 0.0 + (arange(64) == ids.unsqueeze(2) + 7)
}' >wide.amp
printf '!\n#\n' >wide.txt
refuses "a step fails" 5 'wide.txt: one of the texts of lines 1 to 2: element .0, 0. of an index is 4' timeout 100 \
  "$amp" infer -q --device cpu --generate 20 --temperature 0 --prompts wide.txt wide.amp
finish
