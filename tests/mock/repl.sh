#!/usr/bin/env bash
# The prompt on the CUDA device, with the mock's libraries: it gives the bytes of `amp train`, accepts a redefinition,
# reads values from the device, and refuses what needs the CPU.
#   repl.sh AMPC AMP MOCK
. "$(dirname "$0")/../faults/lib.sh"
mock=$(realpath "$3")
job=$source_dir/tests/repl/small.amp
export LD_LIBRARY_PATH=$mock XDG_CACHE_HOME=$work/cache XDG_STATE_HOME=$work
session() { timeout 500 "$amp" repl --device cuda "$job" >"$work/out" 2>&1; }
says() { grep -Eq "$2" "$work/out" && echo "ok: $1" || { failed "$1"; cat "$work/out"; }; }

printf ':train 20\n:save %s\n' "$work/prompt" | session || failed "a session: exit status"
"$amp" train --device cuda -q --steps 20 --save "$work/train" "$job" >"$work/out" 2>&1 || failed "amp train"
same "the bytes of amp train" "$work/prompt" "$work/train"

session <<'END' || failed "another session: exit status"
net(ones(2, 8)).size(0)
:step
:grad fc2.bias
:show logits
:precision bf16
:step
module Net() { fc1 = Linear(8, 4)
 def forward(x) { return fc1(tanh(x)) } }
:step
:eval
END
says "gradients" '^norm [0-9.e-]+; divided by the loss scale 65536$'
says "values" '^f16\[32, 4\]  .*linear runs in f16'
says "a redefinition" '^kept 0 of 2 parameters'
says "a step of it" '^step 3/32 .* loss [0-9]'
says "an evaluation" '^eval acc: [0-9]'
printf ':explain 11\n' | session && failed "an unknown GPU did not fail"
says "an unknown GPU" 'the table of GPUs lacks cuda:0 Mock; name another one, as in :explain h200'
printf ':explain h200 11\n' | session || failed ":explain of another GPU: exit status"
says "another GPU" 'tensor cores'
printf ':kernel net_silu edit\n' | session && failed "an edit did not fail"
says "edits" 'with --device cpu only'
MOCK_CUDA_DEVICES=0 session <<<'1 + 1' && failed "a missing GPU did not fail"
says "no GPU" 'error: --device cuda: '
finish
