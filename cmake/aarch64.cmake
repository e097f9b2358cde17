# Toolchain file: builds for 64-bit Arm on another machine. cmake --preset aarch64 uses it. qemu-aarch64 runs the
# programs that the build itself needs, and the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# The folders and the name of Debian's package, which may lie beside those of another machine.
set(CMAKE_INSTALL_LIBDIR lib/aarch64-linux-gnu)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
