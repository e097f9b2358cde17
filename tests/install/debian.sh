#!/usr/bin/env bash
# The Debian package in a clean Debian: it installs with what it depends on, trains the demo, and builds each example.
# Needs root, debootstrap and a mirror; otherwise the test is skipped.
#   debian.sh AMPC AMP BUILD_FOLDER
build=$(realpath "$3")
. "$(dirname "$0")/../faults/lib.sh"
. /etc/os-release
if [ "$(id -u)" -ne 0 ] || [ "${ID:-}" != debian ] || ! command -v debootstrap >/dev/null; then
  echo "skipped: not root on Debian with debootstrap"
  exit 77
fi
root=$work/root
leave() {
  mountpoint -q "$root/proc" && umount "$root/proc"
  rm -rf --one-file-system "$work"
}
trap leave EXIT
passes "cpack" cpack --config "$build/CPackConfig.cmake" -B "$work/packages"
mirror=$(grep -rhoE 'https?://[^ ]*/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1)
passes "debootstrap" debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "${mirror:-http://deb.debian.org/debian}"
[ $failures -eq 0 ] || finish
cp /etc/resolv.conf "$root/etc/"
mount -t proc proc "$root/proc" || { echo "skipped: may not mount /proc"; exit 77; }
cp "$work"/packages/ampc_*.deb "$root/ampc.deb"
find "$work/packages" -maxdepth 1 -name 'ampc-mpi_*.deb' -exec cp {} "$root/mpi.deb" \;
mkdir "$root/job"
cp -r "$source_dir/models/fashion_mnist" "$source_dir/examples" "$root/job/"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
install() { inside apt-get install -qy --no-install-recommends "$@"; }
passes "the package installs" install /ampc.deb
passes "amp --version" inside amp --version
[ ! -e "$root/mpi.deb" ] || passes "the package with MPI installs" install /mpi.deb
passes "what the demo and the examples need besides" install dataset-fashion-mnist cmake make man-db g++ python3-numpy
passes "the demo trains" inside amp train --device cpu --steps 20 --set eval.steps=2 /job/fashion_mnist/fashion_mnist.amp
passes "amp export runs" inside amp export --help
passes "man amp-train" inside sh -c 'man amp-train | grep -q -- --resume'
passes "examples/clothes builds" inside sh -c 'cd /job && cmake -B built examples/clothes && cmake --build built'
passes "its trainer trains" inside sh -c 'cd /job && built/clothes_train -q --steps 20 --save clothes.st'
passes "its program runs" inside sh -c 'gunzip -c /usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz >/job/pictures &&
  cd /job && built/clothes clothes.st pictures 5'
passes "examples/surrogate builds" inside sh -c 'cd /job && cmake -B loops examples/surrogate && cmake --build loops'
passes "its loops run" inside sh -c 'cd /job && loops/loop_c loop.st && loops/loop_cpp &&
  python3 examples/surrogate/loop.py loops/libsurrogate.so'
for job in "$root"/job/examples/*/*.amp; do
  name=$(basename "$job" .amp)
  # shellcheck disable=SC2016 # for the inner shell
  passes "examples: $name builds" inside sh -c 'cd /job && ampc -o "$1.c" "$2" && sh -c "$(ampc --build-line -o "$1.c" "$2")"' \
    - "$name" "${job#"$root"}"
done
finish
