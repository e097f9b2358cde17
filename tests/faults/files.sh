#!/usr/bin/env bash
# Files: links, devices, pipes, two runs with one checkpoint, names of any bytes, files that a
# command must not overwrite, a full stdout.
#   files.sh AMPC AMP
. "$(dirname "$0")/lib.sh"
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$work/cache}
cd "$work" || exit 1
small_data data
small_job data/job.amp
job=data/job.amp
train() { timeout 1000 "$amp" train --device cpu -q --steps 20 "$@"; }
passes "a run" train --save whole $job
"$ampc" --target=cpu -o whole.c $job || failed "a text"
soon() { timeout 1000 "$@"; } # for commands that could hang

is_link() { # is_link NAME LINK TARGET: LINK still points to TARGET
  if [ "$(readlink "$2")" = "$3" ]; then echo "ok: $1"; else failed "$1: it is no longer a link"; fi
}
nothing_new() { # nothing_new NAME FOLDER FILES...: the folder has exactly these files
  local name=$1 folder=$2 got
  shift 2
  got=$(cd "$folder" && find . -mindepth 1 | sed 's,^\./,,' | sort | tr '\n' ' ')
  [ "$got" = "$* " ] || failed "$name: found $got"
}

# ---- links ---------------------------------------------------------------------------------------
mkdir far here
"$ampc" -O0 --target=cpu -o far/text.c $job
chmod 604 far/text.c
ln -s ../far/text.c here/text.c
ln -s ../far/deps here/deps
passes "-o and --deps through links" "$ampc" --target=cpu -o here/text.c --deps here/deps $job
is_link "-o through a link" here/text.c ../far/text.c
is_link "--deps through a link" here/deps ../far/deps
same "-o through a link: the text" whole.c far/text.c
same "--deps through a link: the text" <(echo "here/text.c: $job") far/deps
[ "$(stat -c %a far/text.c)" = 604 ] || failed "the permissions of a replaced file"
(umask 027 && exec "$ampc" --target=cpu -o masked.c $job)
[ "$(stat -c %a masked.c)" = 640 ] || failed "the permissions of a new file"
ln -s ../far/weights here/weights
passes "--save through a link" train --save here/weights --save-every 10 --keep-last 2 $job
is_link "--save through a link" here/weights ../far/weights
same "--save through a link: the checkpoint" whole far/weights
same "--save through a link: a kept one" whole here/weights.step20
cmp -s whole here/weights.step10 && failed "--save through a link: the kept checkpoints are one file"
nothing_new "links" far deps text.c weights

# ---- devices and pipes as outputs ----------------------------------------------------------------
mkdir dev
ln -s /proc/self/fd/1 dev/stdout # like /dev/stdout; an error on the real one would harm the machine
for path in dev/stdout /dev/fd/1 /proc/self/fd/1; do
  { echo before; "$ampc" --target=cpu -o $path $job; echo after; } >dev/text 2>err
  same "-o $path, to a file" <(echo before; cat whole.c; echo after) dev/text
  "$ampc" -o $path --emit=c --target=cpu $job 2>err | cmp -s - whole.c || failed "-o $path, to a pipe"
done
"$ampc" -o whole2.c --target=cpu --deps dev/stdout $job >dev/text
same "--deps dev/stdout" <(echo "whole2.c: $job") dev/text
mkfifo dev/pipe
soon cat dev/pipe >dev/read &
passes "-o to a pipe" soon "$ampc" --target=cpu --emit=c -o dev/pipe $job
wait $!
same "-o to a pipe: the text" whole.c dev/read
[ -p dev/pipe ] || failed "-o to a pipe: it is no longer a pipe"
for path in dev/stdout /proc/self/fd/1 dev/pipe; do
  refuses "--save $path" 3 "$path: not a regular file" soon "$amp" train --device cpu --save $path $job
done
refuses "--save to a file by dev/stdout" 3 'not a regular file' \
  sh -c "'$amp' train --device cpu --save dev/stdout $job >dev/text"
nothing_new "devices" dev pipe read stdout text

# ---- pipes, devices and folders as inputs ----------------------------------------------------------
mkfifo pipe
refuses "a pipe that nobody writes, as a job" 3 'pipe: no process writes to this pipe' soon "$ampc" pipe
refuses "a folder as a job" 3 'cannot read data: Is a directory' "$ampc" data
refuses "a device without end as a job" 3 'it has more than' soon "$ampc" /dev/zero
for checkpoint in pipe /dev/zero data; do
  refuses "--resume $checkpoint" 3 'not a regular file' soon "$amp" train --device cpu --resume $checkpoint $job
done
printf 'import "pipe"\n' >importing.amp
refuses "a pipe as an import" 3 'pipe": no process writes' soon "$ampc" importing.amp
cp -r data piped && rm piped/train-images.gz && mkfifo piped/train-images.gz
refuses "a pipe as data" 3 'train-images\.gz is no regular file' soon "$amp" train --device cpu piped/job.amp
mkdir -p logs && mkfifo logs/metrics.csv
refuses "a pipe as a log" 3 'metrics\.csv' soon "$amp" train --device cpu --log-dir logs $job
aside() { # aside FILE: prints it without the checksum line, and with JOB in place of the job's name
  local file name
  file=$(sed -nE '1s/.*: the steps of ([^,]*),.*/\1/p' "$1")
  name=${file%.amp}
  sed -E "1s/.*, precision/JOB, precision/; 3d; s/(^| )$file:([0-9])/\1JOB:\2/g; s/\"($file|$name)(\\\\?)\"([^:])/\"JOB\2\"\3/g" "$1"
}
job_by() { # job_by NAME COMMAND...: the command must print the text of the job itself
  local name=$1
  shift
  "$@" >dev/text 2>err
  aside dev/text >got
  aside whole.c >want
  grep -q '^// .* JOB:[0-9]*$' want || failed "$name: no kernel of the job"
  same "$name" want got
}
by_stdin() { soon "$ampc" --target=cpu --emit=c --data-dir data /dev/stdin; }
job_by "a job by /dev/stdin" by_stdin <$job
job_by "a job by a pipe" by_stdin < <(sleep 0.3; cat $job)
job_by "a job by a substitution" soon "$ampc" --target=cpu --emit=c --data-dir data <(cat $job)
exec 8<>pipe # keeps a writer open from the start
(sleep 0.3; cat $job >&8) &
exec 8>&-
job_by "a job by a named pipe" soon "$ampc" --target=cpu --emit=c --data-dir data pipe
wait $!
cache=$work/own/ampc
XDG_CACHE_HOME=$work/own train $job >/dev/null 2>&1
entry=$(echo "$cache"/*.so)
rm "$entry" && mkfifo "$entry"
passes "a pipe as an entry of the cache" env XDG_CACHE_HOME="$work/own" timeout 1000 "$amp" train --device cpu -q \
  --steps 20 --save again $job
same "a pipe as an entry of the cache: the run" whole again

# ---- files that must not be overwritten --------------------------------------------------------------------------------
cp $job before.amp
ln data/job.amp hard && ln -s data/job.amp soft
for path in $job hard soft data/train-labels.gz; do
  cp "$path" kept
  refuses "--save $path" 2 'this command reads' train --save "$path" $job
  same "--save $path: it is there" kept "$path"
done
cp whole.c kept
refuses "--save whole.c" 3 'no checkpoint' train --save whole.c $job
same "--save whole.c: it is there" kept whole.c
echo ":save $job" | "$amp" repl --device cpu $job >dev/text 2>err
grep -q 'this command reads' err || failed ":save over the job"
same "the job is as it was" before.amp $job
printf 'import "layers.c"\nconst M = 1\n' >imports.amp
printf 'const N = 1\n' >layers.c
refuses "-o over an import" 2 'this command reads' "$ampc" --emit=graph -o layers.c imports.amp
refuses "--deps over the job" 2 'this command reads' "$ampc" --emit=ast --deps imports.amp imports.amp
refuses "-o and --deps at one place" 2 'both' "$ampc" --emit=c --target=cpu -o one.c --deps one.c $job
cp whole start && ln -s start model
refuses "--save to a link to what --resume reads" 3 'link to start' train --resume start --save model $job
same "--save to a link to what --resume reads: it is there" whole start
passes "--save to the file that --resume reads" train --resume model --save start $job
train --steps 20 --save kept-last --save-every 10 --keep-last 2 $job >/dev/null 2>&1
passes "from a kept one to its other name" train --resume kept-last.step20 --save kept-last $job

# ---- two runs with one checkpoint -------------------------------------------------------------------------
long() { "$amp" train --device cpu -q --steps 100000000 "$@" $job >dev/text 2>err.long & first=$!; }
mkdir two
ln -s saved two/link
echo mine >two/saved.tmp
long --save two/saved --save-every 10
for _ in $(seq 3000); do [ -e two/saved ] && break; sleep 0.1; done
refuses "another run on its checkpoint" 3 "another run, process $first, writes to two/saved" train --save two/saved $job
refuses "another run on its checkpoint, by a link" 3 "another run, process $first" train --save two/link $job
passes "another run beside it" train --save two/other $job
for _ in $(seq 20); do
  cp two/saved copy
  head -c 9 copy | grep -q '{' && "$amp" eval --device cpu -q --resume copy $job >dev/text 2>err || failed "a reader"
done
kill -9 $first
wait $first 2>/dev/null
for part in two/saved.new-*; do [ -e "$part" ] && touch -d '2 minutes ago' "$part"; done
touch -d '2 minutes ago' two/saved.new-0123456789abcdef two/saved.new-mine two/other.new-0123456789abcdef
touch -d '+1 day' two/saved.new-fedcba9876543210 # as if another process were writing it now
passes "after it was killed" train --resume two/saved --steps 1 --save two/saved $job
same "a file model.tmp of the user's" <(echo mine) two/saved.tmp
nothing_new "old unfinished files are removed, and nothing else" two link other other.new-0123456789abcdef saved \
  saved.new-fedcba9876543210 saved.new-mine saved.tmp
for _ in 1 2 3 4; do # the first one runs, the other one is refused
  rm -f race
  train --save race $job >out.a 2>err.a & a=$!
  train --save race $job >out.b 2>err.b & b=$!
  wait $a; a=$?
  wait $b; b=$?
  case $a$b in 00 | 03 | 30) ;; *) failed "a race ended with $a and $b" ;; esac
  same "a race" whole race
done
long --log-dir logs/one
for _ in $(seq 3000); do [ -s logs/one/metrics.csv ] && break; sleep 0.1; done
refuses "another run on its log" 3 "process $first" train --resume whole --log-dir logs/one $job
kill -9 $first
wait $first 2>/dev/null

# ---- names of any bytes -----------------------------------------------------------------------------------
name=$(printf 'caf\xe9')
{ cat $job; echo 'const TITLE = "plain"'; } >"data/$name.amp"
passes "a job whose name is no UTF-8" train --save "$name.st" --json -D "TITLE=$name" "data/$name.amp"
python3 - "$name.st" out <<'PY' || failed "a name that is not UTF-8"
import json, os, sys
head = open(os.fsencode(sys.argv[1]), "rb").read()
meta = json.loads(head[8:8 + int.from_bytes(head[:8], "little")])["__metadata__"]
assert meta["ampc.job"] == "caf\\xe9" and json.loads(meta["ampc.config"])["job"] == "caf\\xe9.amp", meta
assert json.loads(meta["ampc.config"])["const"] == {"TITLE": "caf\\xe9"}, meta
assert json.loads(open(sys.argv[2], "rb").read().splitlines()[-1])["saved"] == "caf\\xe9.st"
PY
passes "it goes on" train --resume "$name.st" --save "$name.st" "data/$name.amp"
passes "amp inspect --json" "$amp" inspect --json --arch none "data/$name.amp"
python3 -c 'import json; assert json.load(open("out"))["job"] == "caf\\xe9.amp"' || failed "amp inspect --json: the name"

# ---- a full disk behind stdout -----------------------------------------------------------------------------
full() { "$@" >/dev/full; }
is_lost='cannot write to stdout'
for arguments in --help --version --list-ops --list-passes "--explain-error E201" "--emit=graph $job" \
  "--emit=params $job" "--target=cpu $job" "--target=cpu --build-line $job" "--blame=9 $job" "--dump-after=fuse $job"; do
  # shellcheck disable=SC2086
  refuses "ampc $arguments" 3 "$is_lost" full "$ampc" $arguments
done
for arguments in --help --version "train --help" "eval --device cpu -q --resume whole $job" "train --device cpu -q --steps 2 $job" \
  "inspect --arch none $job" "inspect --arch none --json $job" "selftest --device cpu --filter relu"; do
  # shellcheck disable=SC2086
  refuses "amp $arguments" 3 "$is_lost" full "$amp" $arguments
done
repl_full() { echo ':help' | full "$amp" repl --device cpu; }
refuses "amp repl" 3 "$is_lost" repl_full
cp whole.c job.c
line=$("$ampc" --target=cpu --build-line $job)
passes "the emitted program builds" sh -c "$line"
refuses "an emitted program" 3 "$is_lost" sh -c 'cd data && ../job -q --steps 2 >/dev/full'
refuses "an emitted program's help" 3 "$is_lost" sh -c './job --help >/dev/full'
finish
