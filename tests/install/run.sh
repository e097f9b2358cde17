#!/usr/bin/env bash
# What is installed is enough: an emitted program builds from the installed tree alone and trains as
# the installed amp does.
#   run.sh AMPC AMP BUILD_FOLDER
build=$(realpath "$3")
. "$(dirname "$0")/../faults/lib.sh"
cmake --install "$build" --prefix "$work/a tree" >"$work/out" 2>"$work/err" || failed "cmake --install"
bin="$work/a tree/bin"
[ "$(cd "$bin" && echo *)" = "amp ampc" ] || failed "programs: $(ls "$bin")"
for header in ampc_rt.h ampc_plan.h ampc_commands.h ampc_declared.h ampc_values.h ampc_state.h; do
  [ -f "$work/a tree/include/$header" ] || failed "no $header"
done
ls "$work/a tree"/lib*/libampcrt.a "$work/a tree"/lib*/*/libampcrt.a >"$work/out" 2>/dev/null
[ "$(wc -l <"$work/out")" = 1 ] || failed "not one libampcrt.a"
[ "$(cd "$work/a tree" && find . -name '*.a' | wc -l)" = 1 ] || failed "more than one library"
# what is global must be ampc's by name: a program that links the library may have any other
library=$(find "$work/a tree" -name libampcrt.a)
nm -g --defined-only "$library" 2>/dev/null | awk 'NF == 3 {print $3}' >"$work/symbols"
grep -qx ampc_main "$work/symbols" || failed "libampcrt.a has no ampc_main"
grep -v '^ampc_' "$work/symbols" >"$work/strangers" && failed "global symbols without ampc_: $(tr '\n' ' ' <"$work/strangers")"
small_data "$work/data"
small_job "$work/data/job.amp"
cd "$work/data" || exit 1
"$bin/ampc" -o job.c job.amp || failed "ampc"
"$bin/ampc" --build-line -o job.c job.amp >line || failed "--build-line"
grep -qF "$source_dir" line && failed "the build line names the source tree: $(cat line)"
sh line || failed "the emitted program does not build: $(cat line)"
passes "the emitted program trains" ./job -q --steps 3 --save emitted
passes "amp trains" "$bin/amp" train --device cpu -q --steps 3 --save jit job.amp
same "the same state" emitted jit
finish
