#!/usr/bin/env bash
# Builds the emulated libcuda.so.1 with the product's kernels in it, and an emulated libcublas.so.13 and libnccl.so.2 beside
# it, unless they are there, and prints where the first is. With the argument checked: libpenstock-checked.so too, and where it is.
# Several may run at the same time: one builds, and the others wait for it where there is flock. Exit code 3: there is no g++.
set -euo pipefail
cd "$(dirname "$0")"
kernels=../../../main/cuda
target=../../../../target/emulator
command -v g++ > /dev/null || { echo "there is no g++ on the PATH" >&2; exit 3; }

checked=${1:-}
hash=$({ g++ --version; LC_ALL=C; cat build.sh *.cpp *.h cublas/*.cpp nccl/*.cpp broken.cu $kernels/*.cu $kernels/*.cuh; } | sha256sum | cut -c1-16)
mkdir -p $target
target=$(cd $target && pwd)
wanted=${checked:+libpenstock-checked.so}
if [ ! -f "$target/$hash/${wanted:-libcuda.so.1}" ] && command -v flock > /dev/null; then
    exec 9> "$target/lock"
    flock 9
fi
work=$(mktemp -d "$target/building.XXXXXX")
trap 'rm -rf "$work"' EXIT
flags="-std=c++20 -O2 -march=native -fPIC -pthread -fvisibility=hidden -Wall -Wno-unknown-pragmas -I. -I$kernels"
# a GPU wants every access at a multiple of its size, a CPU does not: g++ calls a function of grid.cpp where one is not
of_kernels="-fsanitize=alignment -fno-sanitize-recover=alignment -include cuda_shim.h"
enlist_kernels() {
    # the kernels by name, found in the preprocessed sources by the mark that cuda_shim.h puts on them
    local names
    names=$(for source in $kernels/kernels.cu broken.cu; do g++ $flags -include cuda_shim.h -x c++ -E -P $source; done |
        tr '\n' ' ' |
        grep -oE 'extern "C" __attribute__\(\(used\)\) void\s+\w+' | grep -oE '\w+$')
    {
        echo '#include "kernels.cu"'
        echo '#include "broken.cu"'
        for name in $names; do
            echo "static emulator::Enlisted<&$name> enlisted_$name(\"$name\");"
        done
    } > "$work/kernels.cpp"
}
if [ ! -f "$target/$hash/libcuda.so.1" ]; then
    enlist_kernels
    g++ $flags $of_kernels -c "$work/kernels.cpp" -o "$work/kernels.o" &
    for source in *.cpp; do g++ $flags -c "$source" -o "$work/${source%.cpp}.o"; done
    wait $! # for the kernels, which take as long as all others
    g++ -shared -pthread -Wl,-soname,libcuda.so.1 "$work"/*.o -o "$work/libcuda.so.1"
    g++ $flags -shared -Wl,-soname,libcublasLt.so.13 cublas/cublasLt.cpp "$work/libcuda.so.1" -o "$work/libcublasLt.so.13"
    g++ $flags -shared -Wl,-soname,libcublas.so.13 cublas/cublas.cpp "$work/libcublasLt.so.13" "$work/libcuda.so.1" \
        -o "$work/libcublas.so.13"
    g++ $flags -shared -Wl,-soname,libnccl.so.2 nccl/nccl.cpp "$work/libcuda.so.1" -o "$work/libnccl.so.2"
    mkdir -p "$target/$hash"
    # the one that is looked for comes last
    mv "$work/libcublasLt.so.13" "$work/libcublas.so.13" "$work/libnccl.so.2" "$target/$hash"
    mv "$work/libcuda.so.1" "$target/$hash/libcuda.so.1"
fi
if [ -n "$checked" ] && [ ! -f "$target/$hash/libpenstock-checked.so" ]; then
    enlist_kernels
    # loads and stores as they are written: nothing is kept in registers that the sources load twice
    g++ $flags $of_kernels -Og -march=x86-64 -fsanitize=thread -c "$work/kernels.cpp" -o "$work/checked.o"
    g++ -shared -pthread "$work/checked.o" "$target/$hash/libcuda.so.1" -o "$work/libpenstock-checked.so"
    mv "$work/libpenstock-checked.so" "$target/$hash/libpenstock-checked.so"
fi
echo "$target/$hash/${wanted:-libcuda.so.1}"
