#!/usr/bin/env bash
# The rules of the house that a script can see: folders of more than five files have a README that
# names each source file and no file that is gone; no file is longer than 600 lines; ops are known by
# their table; the two commands stand within the first 30 lines of the README.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
complain() {
  echo "FAILED: $1"
  bad=1
}

# covered NAME README: named there, or by a pattern such as `lower_*`
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
    [ -e "$folder/$name" ] || [ -e "$name" ] || [ -n "$(any_file "$name")" ] || complain "$readme names $name, which is not there"
  done
  for file in $files; do
    case $file in
    ./tests/*.amp | ./tests/*.expected) ;;
    *.c | *.cu | *.cuh | *.def | *.py | *.sh)
      covered "$(basename "$file")" "$readme" || complain "$readme leaves out $(basename "$file")"
      ;;
    esac
  done
done

while read -r lines file; do
  [ "$lines" -le 600 ] || complain "$file has $lines lines"
done < <(find compiler grammar runtime runner templates tests \
  \( -name '*.[ch]' -o -name '*.cu*' -o -name '*.sh' \) -exec wc -l {} + | grep -v ' total$')

# A banner that is too long for its line would be broken by scripts/format.
while IFS= read -r place; do complain "$place is a banner over two lines"; done < <(
  grep -rnEA1 '^/\* ---- ' compiler runtime runner grammar bench tests --include='*.[ch]' |
    grep -E -- '-[0-9]+- ?(\* -*|-*)\*/$' | sed 's/-\([0-9]*\)-.*/:\1/')

# What is known of an op stands in its row of compiler/graph/ops.def. Outside rules/ and emit/ code may
# name the ops that the graph itself is made of, and lower/ those that the language has words for.
own='source|param|number|integer|setting|step|epoch|steps_taken|loss_scale|cast|cast_like|reshape|expand|permute|transpose'
own="$own|full|sum|add|cat|detach|matmul|gemm|output|minimize|metric|grad_accumulate|grad_norm|optimizer_control|trust_ratio"
own="$own|carry|next|turn|stack|copy|scan|scan_end|own_result|gradient|ranges|probed"
while IFS=: read -r file line op; do
  [[ ${op#OP_} =~ ^($own)$ ]] || complain "$file:$line names $op: is there no trait for what it asks?"
done < <(grep -rnoE '\bOP_[a-z][a-z0-9_]*' compiler runner --include='*.[ch]' |
  grep -vE '^(compiler/(rules|emit|lower)|runner/selftest)/')

# What a merge leaves where it could not decide.
while IFS= read -r place; do complain "$place is a mark of a conflict"; done < <(
  git grep -nE '^(<<<<<<<|>>>>>>>) ' -- . | cut -d: -f1,2)

# Two traits of ops with one bit would each be the other.
while IFS= read -r bit; do complain "compiler/graph/traits.h has two traits of bit $bit"; done < <(
  grep -oE 'T_[a-z_]+ = 1[ul]* << [0-9]+' compiler/graph/traits.h | sed 's/.*<< //' | sort | uniq -d)

# Searched by halves.
sed -n '/reserved\[\] = {/,/};/p' compiler/base/reserved_names.c | grep -o '"[^"]*"' | LC_ALL=C sort -cu ||
  complain "the words of compiler/base/reserved_names.c are not in order"

for command in scripts/demo scripts/test; do
  head -n 30 README.md | grep -q "^$command" || complain "README.md lacks $command in its first 30 lines"
done
exit $bad
