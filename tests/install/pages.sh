#!/usr/bin/env bash
# Man pages and completions: each option of --help is in them, groff has no warnings, and bash and fish complete.
#   pages.sh AMPC AMP BUILD_FOLDER
share=$(realpath "$3/share")
. "$(dirname "$0")/../faults/lib.sh"
cd "$work" || exit 1
export LC_ALL=C.UTF-8

# check NAME PROGRAM WORD...: the page, and the completions of all shells
check() {
  local name=$1 program=$2 missing='' option
  shift
  groff -man -Tascii -ww -P-cbou "$share/man/man1/$name.1" 2>"$work/err" >page
  [ -s "$work/err" ] && failed "$name.1: warnings of groff"
  "$@" --help >help || failed "$* --help"
  for option in $(grep -oE '^  (-., )?--[a-z-]+' help | grep -oE -- '--[a-z-]+'); do
    grep -qE -- "(^| )$option( |\[|$)" page || missing+=" $option of the page"
    grep -qE -- " $option( |$)" "$share/bash-completion/completions/${program##*/}" || missing+=" $option of bash"
    grep -qE -- "'\*?$option(\[|=)" "$share/zsh/site-functions/_${program##*/}" || missing+=" $option of zsh"
    grep -qE -- " -l ${option#--}( |$)" "$share/fish/vendor_completions.d/${program##*/}.fish" || missing+=" $option of fish"
  done
  if [ -s help ] && [ -z "$missing" ]; then echo "ok: $name"; else failed "$name lacks$missing"; fi
}
check ampc "$ampc"
verbs=$("$amp" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
for verb in $verbs; do check "amp-$verb" "$amp" "$verb"; done

# completes WORDS ANSWER: what bash offers for the last of the words
completes() {
  local got
  # shellcheck disable=SC2016 # for the inner bash
  got=$(bash --norc -c 'compopt() { :; }; . "$1"; read -ra COMP_WORDS <<<"$2"; [[ $2 != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "_${COMP_WORDS[0]}"; echo "${COMPREPLY[*]}"' - \
    "$share/bash-completion/completions/${1%% *}" "$1" 2>&1)
  [ "$got" = "$2" ] || failed "bash completes '$1' to '$got' instead of '$2'"
}
mkdir folder && touch job.amp other.txt
completes "amp pro" "profile probe"
completes "amp train --marc" "--march"
completes "amp train --march x86-64-v" "x86-64-v2 x86-64-v3 x86-64-v4"
completes "amp train --device c" "cpu cuda"
completes "amp train --set t" "train.batch= train.epochs="
completes "ampc --emit = pt" "ptx" # as readline divides --emit=pt
completes "ampc --explain = " "text json"
completes "ampc --explain " "folder job.amp"
completes "amp train " "folder job.amp"
completes "amp train --save o" "other.txt"
completes "amp train --log-dir " "folder"
completes "amp train --steps " ""
for file in "$share"/zsh/site-functions/*; do passes "zsh reads $(basename "$file")" zsh -n "$file"; done
fish=$(HOME=$work fish -N -c "source $share/fish/vendor_completions.d/amp.fish; complete -C 'amp train --march x86-64-v' | cut -f 1" | paste -sd ' ')
[ "$fish" = "x86-64-v2 x86-64-v3 x86-64-v4" ] || failed "fish completes --march to '$fish'"
finish
