#!/usr/bin/env bash
# `amp tokens`: ids in a file, in a job, and back; what it prints; what it refuses.
#   cli.sh AMP
set -euo pipefail
amp=$1
here=$(cd "$(dirname "$0")" && pwd)/fixtures
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() { echo "FAILED: $1" && exit 1; }
is() { [ "$2" = "$3" ] || fail "$1: got '$2', expected '$3'"; }
refuses() { # refuses STATUS TEXT ARGUMENTS...
  local status=0 out
  out=$("$amp" tokens "${@:3}" 2>&1 >/dev/null) || status=$?
  is "status of ${*:3}" "$status" "$1"
  case $out in *"$2"*) ;; *) fail "${*:3}: '$out' lacks '$2'" ;; esac
}
numbers() { od -An -v -t "$1" "$2" | xargs; }
gpt2=(--tokenizer "$here/gpt2.json")
llama=(--tokenizer "$here/llama2.json")
printf 'Hello World <|end|>\r\n12 \xc3\xbc\n' >a.txt
printf 'x' >b.txt

# out and back, as u16 and as i32
"$amp" tokens "${gpt2[@]}" a.txt -o a.bin >told
is "message" "$(cat told)" 'a.bin: 11 tokens of 1 text; in a job: tokens("a.bin", format="u16", length=...)'
"$amp" tokens "${gpt2[@]}" --decode a.bin | cmp - a.txt || fail "the text differs"
"$amp" tokens "${gpt2[@]}" --format i32 --quiet a.txt -o wide.bin
is "ids as i32" "$(numbers d4 wide.bin)" "$(numbers u2 a.bin)"
"$amp" tokens "${gpt2[@]}" --format i32 --decode wide.bin -o back.txt
cmp back.txt a.txt || fail "the text differs as i32"
"$amp" tokens "${gpt2[@]}" --quiet - -o stdin.bin <a.txt
cmp stdin.bin a.bin || fail "stdin gives other ids"

# several texts, lines, separators, special tokens
"$amp" tokens "${gpt2[@]}" -q a.txt b.txt --separator '<|endoftext|>' -o two.bin
"$amp" tokens "${gpt2[@]}" -q b.txt -o b.bin
is "two texts" "$(numbers u2 two.bin)" "$(numbers u2 a.bin) 0 $(numbers u2 b.bin) 0"
printf 'x\r\n\nx' >lines.txt
"$amp" tokens "${gpt2[@]}" -q --lines lines.txt --separator '<|endoftext|>' -o lines.bin
is "lines" "$(numbers u2 lines.bin)" "$(numbers u2 b.bin) 0 0 $(numbers u2 b.bin) 0"
"$amp" tokens "${llama[@]}" -q b.txt -o with.bin
"$amp" tokens "${llama[@]}" -q b.txt --no-special -o without.bin
is "<s>" "$(numbers u2 with.bin)" "1 $(numbers u2 without.bin)"
is "decoded" "$("$amp" tokens "${llama[@]}" --decode with.bin)" "<s> x"
is "decoded without special tokens" "$("$amp" tokens "${llama[@]}" --no-special --decode with.bin)" x
"$amp" tokens "${gpt2[@]}" -q --plain a.txt -o plain.bin
[ "$(numbers u2 plain.bin | wc -w)" -gt "$(numbers u2 a.bin | wc -w)" ] || fail "--plain finds a special token"
is "--show" "$("$amp" tokens "${gpt2[@]}" --show b.txt)" x
printf 'a <|end|>b\nc' >show.txt
is "--show of lines" "$("$amp" tokens "${gpt2[@]}" --show show.txt)" 'a| |<|end|>|b|\n
c'

# a job reads what was written
read -r -a ids <<<"$(numbers u2 a.bin)"
echo 'tokens("a.bin", length=4, format="u16")' | "$amp" repl >out
is "the source tokens()" "$(head -1 out | tr -d '[],' | xargs)" "${ids[*]:0:4}"

# refused
refuses 3 "remove the file, or overwrite it with --force" "${gpt2[@]}" a.txt -o b.bin
"$amp" tokens "${gpt2[@]}" -q --force a.txt -o b.bin
cmp a.bin b.bin || fail "--force does not overwrite"
refuses 2 "this command reads it" "${gpt2[@]}" a.txt -o a.txt --force
refuses 2 "expected --tokenizer FILE" a.txt -o c.bin
refuses 2 "no file was given" "${gpt2[@]}" --show
refuses 2 "expected -o FILE to write ids, or --show" "${gpt2[@]}" a.txt
refuses 2 "expected -o FILE to write ids, or --show" "${gpt2[@]}" a.txt --show -o c.bin
refuses 2 "--decode takes one file" "${gpt2[@]}" --decode a.bin b.bin
refuses 2 "has no token foo" "${gpt2[@]}" --separator foo a.txt -o c.bin
refuses 3 "are not whole ids of 2 bytes" "${gpt2[@]}" --decode b.txt
printf zzzz >odd.bin
refuses 3 "id 31354 at place 0 has no token in" "${gpt2[@]}" --decode odd.bin -o c.txt
printf 'ok\na\xff' >bad.txt
refuses 3 "bad.txt: byte 4 of the text, 0xff, is not UTF-8" "${gpt2[@]}" a.txt bad.txt -o c.bin
refuses 3 "bad.txt:2: byte 1 of the text" "${gpt2[@]}" --lines bad.txt -o c.bin
refuses 3 "cannot read nothing.txt" "${gpt2[@]}" nothing.txt -o c.bin
refuses 3 "nothing.json" --tokenizer nothing.json a.txt -o c.bin
[ ! -e c.bin ] || fail "a refused text leaves a file"
echo "all as expected"
