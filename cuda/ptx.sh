#!/usr/bin/env bash
# Makes the PTX that ships, or checks that the shipped one is what the sources give:   cuda/ptx.sh make | check
# Needs nvcc and ptxas of CUDA 13.0 on the PATH; another version gives other bytes.
# cuda/ptx.sh table    what each kernel of the shipped PTX takes of a multiprocessor, into kernels.txt beside the sources (ptxas alone)
set -euo pipefail
cd "$(dirname "$0")/src/main/cuda"
shipped=../resources/dev/penstock/cuda/gpu/kernels.ptx
architectures="80 90 100 120"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compute_80 is the least with cp.async and bf16 mma. Drivers from CUDA 11 on read version 7.0, and nothing newer is used:
# ptxas checks that. The first line is what a unit test compares with the sources.
make_ptx() {
    local hash
    hash=$(LC_ALL=C; for file in *.cu *.cuh; do echo "$file"; cat "$file"; done | sha256sum | cut -d' ' -f1)
    nvcc -std=c++17 -O3 -arch=compute_80 -ptx kernels.cu -o "$work/raw.ptx"
    echo "// sources sha256 $hash"
    sed -e 's/^\.version .*/.version 7.0/' -e '/^\/\//d' -e '/^[[:space:]]*\/\/ begin inline asm/d' \
        -e '/^[[:space:]]*\/\/ end inline asm/d' -e '/^$/d' "$work/raw.ptx"
}

assemble() {
    local architecture
    for architecture in $architectures; do
        ptxas -arch="sm_$architecture" -v "$1" -o "$work/kernels.cubin" 2> "$work/report"
        if grep -B2 'bytes spill' "$work/report" | grep -v ' 0 bytes spill stores, 0 bytes spill loads' | grep 'bytes spill'; then
            echo "sm_$architecture: registers spill" >&2
            exit 1
        fi
        echo "sm_$architecture: assembles without spills"
    done
}

# Of every kernel and architecture: registers of a thread, bytes of shared memory whose size is fixed, of stack, and of spills.
table() {
    local architecture
    for architecture in 80 90; do
        ptxas -arch="sm_$architecture" -v "$shipped" -o "$work/kernels.cubin" 2>&1 |
            awk -v architecture="sm_$architecture" '
                /Compiling entry function/ { split($0, words, "\047"); name = words[2] }
                /bytes stack frame/ { stack = $1; spilled = $5 + $9 }
                /Used [0-9]+ registers/ {
                    shared = 0
                    for (i = 1; i < NF; i++) {
                        if ($i == "Used") registers = $(i + 1)
                        if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared = $i
                    }
                    printf "%-34s %-6s %9d %9d %9d %9d\n", name, architecture, registers, shared, stack, spilled
                }'
    done | LC_ALL=C sort
}

if [ "${1:-}" = table ]; then
    {
        echo "# ptxas $(ptxas --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'), $(head -1 $shipped | cut -c4-); made by cuda/ptx.sh table"
        printf '%-34s %-6s %9s %9s %9s %9s\n' kernel on registers shared stack spilled
        table
    } > "$work/table"
    cp "$work/table" kernels.txt
    exit 0
fi

make_ptx > "$work/kernels.ptx"
assemble "$work/kernels.ptx"
case ${1:-} in
    make)
        mkdir -p "$(dirname $shipped)"
        cp "$work/kernels.ptx" $shipped
        ;;
    check)
        cmp "$work/kernels.ptx" $shipped || { echo "the shipped PTX is not what the sources give: run cuda/ptx.sh make" >&2; exit 1; }
        echo "the shipped PTX is what the sources give"
        ;;
    *)
        echo "usage: cuda/ptx.sh make | check | table" >&2
        exit 2
        ;;
esac
