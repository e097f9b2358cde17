#!/usr/bin/env bash
# The package for arm64: apt finds all that it depends on, and with that alone, unpacked into a folder, amp trains a job
# and the build line links one, in qemu. Nothing of arm64 that this machine has is seen. The C compiler is this machine's
# cross compiler with the headers and libraries of the folder. Needs a mirror of Debian; elsewhere the test is skipped.
#   arm64.sh AMPC AMP
. "$(dirname "$0")/../faults/lib.sh"
. /etc/os-release
if [ "${ID:-}" != debian ] || ! unshare -rm true 2>/dev/null; then
  echo "skipped: not Debian, or no namespace of mounts"
  exit 77
fi
cd "$source_dir" || exit 1
passes "the build for 64-bit Arm" tests/built.sh aarch64 ampc amp linked_runtime ampc_shared pages
passes "cpack" cpack --config build-aarch64/CPackConfig.cmake -B "$work/packages"
cd "$work" || exit 1
deb=$(echo packages/ampc_*_arm64.deb)
mkdir -p state/lists/partial cache/archives/partial tree bin empty
touch status
get() {
  apt-get -qy -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$work/state" \
    -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}
passes "the index of arm64" get update
passes "what the package depends on" get install --no-install-recommends --download-only "./$deb"
[ $failures -eq 0 ] || finish
for file in cache/archives/*.deb "$deb"; do dpkg-deb -x "$file" tree || failed "$file"; done
[ -e tree/usr/bin/gcc ] || failed "the package does not depend on a C compiler"
cat >bin/cc <<CC
#!/usr/bin/env bash
exec aarch64-linux-gnu-gcc --sysroot="$work/tree" "\${@/#-march=native/-march=armv8-a}"
CC
chmod +x bin/cc
small_data data
small_job data/job.amp
board() { # board COMMAND...: runs it in qemu, without the arm64 libraries of this machine
  unshare -rm sh -c 'for d in /lib/aarch64-linux-gnu /usr/lib/aarch64-linux-gnu /usr/aarch64-linux-gnu/lib; do
      [ ! -d $d ] || mount --bind empty $d || exit 99
    done
    exec env PATH="$PWD/bin:$PATH" XDG_CACHE_HOME="$PWD/kernels" qemu-aarch64 -L tree "$@"' - "$@"
}
passes "amp --version" board tree/usr/bin/amp --version
passes "amp train" board tree/usr/bin/amp train --device cpu --steps 5 --save job.st data/job.amp
passes "ampc" board tree/usr/bin/ampc -o job.c data/job.amp
passes "the build line" env PATH="$work/bin:$PATH" sh -c "$(board tree/usr/bin/ampc --build-line -o job.c data/job.amp)"
passes "the emitted program trains" board ./job -q --device cpu --steps 5 --data-dir data --save own.st
same "the same state" job.st own.st
finish
