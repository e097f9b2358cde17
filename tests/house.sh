#!/usr/bin/env bash
# The house rules that a script can check. A folder of more than five files has a README that names each source file
# and no missing file. No file is longer than 600 lines, and no line of Markdown than 120 columns. The op table
# describes the ops. The two commands are in the first 30 lines of the README.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
complain() {
  echo "FAILED: $1"
  bad=1
}

# covered NAME README: named there, or matched by a pattern such as `lower_*`
covered() {
  local word
  grep -qF "$1" "$2" && return 0
  while read -r word; do
    # shellcheck disable=SC2053 # a pattern
    [[ $1 == $word || ${1%.*} == $word ]] && return 0
  done < <(sed 's/<[a-z]*>/*/g' "$2" | grep -o '`[^`]*\*[^`]*`' | tr -d '\`')
  return 1
}

any_file() { # a file of that name anywhere
  find . -path './build*' -prune -o -path "*/$1" -print -quit
}

folders=$(find . -path './build*' -prune -o -path ./.git -prune -o -path ./.cache -prune -o -type d -print)
for folder in $folders; do
  files=$(find "$folder" -maxdepth 1 -type f ! -name 'README.md' ! -name '.*' | sort)
  count=$(printf '%s' "$files" | grep -c .)
  readme=$folder/README.md
  if [ "$count" -gt 5 ] && [ ! -e "$readme" ]; then complain "$folder has $count files and no README"; fi
  [ -e "$readme" ] && [ "$folder" != . ] || continue
  for name in $(grep -o '`[A-Za-z0-9_./-]*\.\(c\|h\|cu\|cuh\|def\|sh\|py\|amp\)`' "$readme" | tr -d '\`'); do
    [ -e "$folder/$name" ] || [ -e "$name" ] || [ -n "$(any_file "$name")" ] || complain "$readme names $name, which does not exist"
  done
  for file in $files; do
    case $file in
    ./tests/*.amp | ./tests/*.expected) ;;
    *.c | *.cu | *.cuh | *.def | *.py | *.sh)
      covered "$(basename "$file")" "$readme" || complain "$readme does not name $(basename "$file")"
      ;;
    esac
  done
done

while read -r lines file; do
  [ "$lines" -le 600 ] || complain "$file has $lines lines"
done < <(find common compiler grammar runtime runner templates tests \
  \( -name '*.[ch]' -o -name '*.cu*' -o -name '*.sh' \) -exec wc -l {} + | grep -v ' total$')

# Other versions lay some lines out in another way.
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  scripts/format --check >/dev/null 2>&1 || complain "scripts/format would change a file"
fi

# scripts/format would break a banner that is too long for its line.
while IFS= read -r place; do complain "$place is a banner of two lines"; done < <(
  grep -rnEA1 '^/\* ---- ' common compiler runtime runner grammar bench tests --include='*.[ch]' |
    grep -E -- '-[0-9]+- ?(\* -*|-*)\*/$' | sed 's/-\([0-9]*\)-.*/:\1/')

# The row of an op in compiler/graph/ops.def describes the op. Only rules/, kernel/, lower/, the selftest and the
# translation to ONNX may name any op. Other code may name only the ops of this list, from which the graph itself is built.
own='source|param|number|integer|setting|step|epoch|steps_taken|loss_scale|cast|cast_like|reshape|expand|permute|transpose|pad|slice'
own="$own|full|sum|add|cat|detach|matmul|gemm|output|minimize|metric|grad_accumulate|grad_norm|optimizer_control|trust_ratio|update_norms"
own="$own|indices|index_select|store|carry|next|turn|stack|copy|scan|scan_end|own_result|gradient|ranges|probed"
own="$own|member_sum|member_mean|member_rows|grad_exchange|weight_exchange"
while IFS=: read -r file line op; do
  [[ ${op#OP_} =~ ^($own)$ ]] || complain "$file:$line names $op: use a trait of the op instead"
done < <(grep -rnoE '\bOP_[a-z][a-z0-9_]*' compiler runner --include='*.[ch]' |
  grep -vE '^(compiler/(rules|kernel|lower)|runner/(selftest|export))/')

# Files that users name are opened where they are registered as inputs: Note [what may be replaced].
while IFS= read -r place; do complain "$place opens a file: use file_open_input or file_read"; done < <(
  git grep -nE '[^_a-z](open|openat)\([^)]*O_RDONLY|fopen\([^)]*"r|json_load_file\(|gzopen\(' -- runner compiler runtime |
    grep -vE '^runtime/(base/cache\.c|data/formats/stream\.c|data/texts/texts\.c)|^runner/(jit|job/memory\.c|inspect/gpu\.c|tune/reference\.c)|/dev/null|/proc/' | cut -d: -f1,2)

# Markdown has lines of at most 120 columns, except tables, code, and words without a blank, such as links.
while IFS= read -r place; do complain "$place is longer than 120 columns"; done < <(
  git ls-files '*.md' | xargs awk '
    FNR == 1 { code = 0 }
    /^```/ { code = !code }
    length > 120 && !code && !/^(\||    |#)/ && match($0, / [^ ]/) { print FILENAME ":" FNR }')

# Marks that a merge leaves at a conflict.
while IFS= read -r place; do complain "$place is a conflict mark of a merge"; done < <(
  git grep -nE '^(<<<<<<<|>>>>>>>) ' -- . | cut -d: -f1,2)

# Each trait of ops needs a bit of its own.
while IFS= read -r bit; do complain "compiler/graph/traits.h has two traits of bit $bit"; done < <(
  grep -oE 'T_[a-z_]+ = 1[ul]* << [0-9]+' compiler/graph/traits.h | sed 's/.*<< //' | sort | uniq -d)

# The table is searched by bisection.
sed -n '/reserved\[\] = {/,/};/p' compiler/base/reserved_names.c | grep -o '"[^"]*"' | LC_ALL=C sort -cu ||
  complain "the words of compiler/base/reserved_names.c are not sorted"

for command in scripts/demo scripts/test; do
  head -n 30 README.md | grep -q "^$command" || complain "README.md lacks $command in its first 30 lines"
done
exit $bad
