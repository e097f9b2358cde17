#!/usr/bin/env bash
# What is installed is enough: an emitted program builds from the installed tree alone and trains as
# the installed amp does; so do programs of other CMake projects.
#   run.sh AMPC AMP BUILD_FOLDER
build=$(realpath "$3")
. "$(dirname "$0")/../faults/lib.sh"
cmake --install "$build" --prefix "$work/a tree" >"$work/out" 2>"$work/err" || failed "cmake --install"
bin="$work/a tree/bin"
[ "$(cd "$bin" && echo *)" = "amp ampc" ] || failed "programs: $(ls "$bin")"
for header in ampc_rt.h ampc_plan.h ampc_metrics.h ampc_commands.h ampc_declared.h ampc_values.h ampc_state.h; do
  [ -f "$work/a tree/include/$header" ] || failed "no $header"
done
ls "$work/a tree"/lib*/libampcrt.a "$work/a tree"/lib*/*/libampcrt.a >"$work/out" 2>/dev/null
[ "$(wc -l <"$work/out")" = 1 ] || failed "not one libampcrt.a"
[ "$(cd "$work/a tree" && find . -name '*.a' | wc -l)" = 2 ] || failed "not libampcrt.a and libampcstatic.a"
for file in man/man1/amp-train.1 bash-completion/completions/amp zsh/site-functions/_amp fish/vendor_completions.d/amp.fish \
  vim/vimfiles/syntax/amp.vim ampc/vscode/package.json; do
  [ -s "$work/a tree/share/$file" ] || failed "no $file"
done
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

# ---- find_package(ampc), pkg-config ----
mkdir "$work/a project" && cd "$work/a project" || exit 1
cat >net.amp <<'AMP'
module Net { fc = Linear(4, 2); def forward(x) { return fc(x) } }
AMP
cat >job.amp <<'AMP'
import "net.amp"
const HIGH = 8.0
data d() { return synthetic(64, [4], low=0, high=HIGH) }
model net = Net()
optimizer opt = SGD(net, lr=0.1)
train x in d() with batch=8, epochs=1 { minimize mean(net(x) * net(x)) with opt }
infer apply(x: f32[1, 4]) -> f32[1, 2] { return net(x) }
AMP
cat >main.cc <<'CC'
#include "job.h"
int main(int, char **argv)
{
  struct ampc_runtime *rt;
  const float x[4] = {};
  float y[4] = {-1, -1};
  if (job_open("cpu", argv[1], ".", &rt) || job_apply(rt, x, y)) return 1;
  job_close(rt);
  return y[0] == -1;
}
CC
cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(own C CXX)
add_compile_options(-Wall -Wextra -Werror -Wconversion)
find_package(ampc 0.1 REQUIRED)
ampc_add_job(train job.amp OPTIONS -D HIGH=0.5 --no-onednn)
ampc_add_job(net job.amp LIBRARY RUNTIME ampc::shared)
add_executable(main main.cc)
target_link_libraries(main PRIVATE net)
CMAKE
lines() { grep -c "$1" "$work/out"; }
passes "find_package" cmake -B built -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$work/a tree"
passes "the project builds" cmake --build built
passes "its program trains" built/train -q --device cpu --save net.safetensors
passes "its other program calls the job" built/main net.safetensors
readelf -d built/main built/train | grep -c 'NEEDED.*libampcrt\.so\.' >"$work/out"
[ "$(cat "$work/out")" = 1 ] || failed "not one of the programs needs the shared runtime"
ldd built/train | grep -E 'dnnl|gomp' && failed "a program without oneDNN links it"
passes "it builds again" cmake --build built
[ "$(lines Generating)" = 0 ] || failed "a job that has not changed is compiled again"
sed -i 's/Linear(4, 2)/Linear(4, 2, bias=false)/' net.amp
passes "it builds with another import" cmake --build built
[ "$(lines Generating)" = 2 ] || failed "a changed import does not compile both jobs again"
refuses "weights with a bias" 3 'bias' built/train -q --resume net.safetensors
echo 'ampc_add_job(wrong job.amp STATIC)' >>CMakeLists.txt
cmake -B built >"$work/out" 2>&1 && failed "ampc_add_job: an unknown argument"
grep -q 'unknown argument STATIC' "$work/out" || failed "ampc_add_job: the message about an unknown argument"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$work/a tree" -name ampc.pc)")
passes "pkg-config" sh -c "cc -o linked built/train.job/job.c $(pkg-config --cflags --libs ampc)"
passes "a program of pkg-config trains" env LD_LIBRARY_PATH="$PKG_CONFIG_PATH/.." ./linked -q --device cpu --steps 1
finish
