#!/usr/bin/env bash
# Makes the PTX and the machine code that ship, or checks that they are what the sources give:   cuda/ptx.sh make | check
# Needs nvcc and ptxas of CUDA 13.0 on the PATH; another version gives other bytes.
# cuda/ptx.sh table    what each kernel of the shipped PTX takes of a multiprocessor, and what its machine code has, into kernels.txt
# beside the sources; needs ptxas of 13.0 and nvdisasm (13.0 or later, of the CUDA toolkit or the triton wheel)
set -euo pipefail
cd "$(dirname "$0")/src/main/cuda"
resources=../resources/dev/penstock/cuda/gpu
shipped=$resources/kernels.ptx
architectures="80 90 100 120"
# those whose machine code ships; it runs on all with the same first digit
shipped_architectures="80 90"

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
        ptxas -arch="sm_$architecture" -v "$1" -o "$work/kernels-sm_$architecture.cubin" 2> "$work/report"
        if grep -B2 'bytes spill' "$work/report" | grep -v ' 0 bytes spill stores, 0 bytes spill loads' | grep 'bytes spill'; then
            echo "sm_$architecture: registers spill" >&2
            exit 1
        fi
        echo "sm_$architecture: assembles without spills"
    done
}

# Of every kernel and architecture. By ptxas: threads of a block where the sources fix them, registers of a thread, bytes of
# shared memory whose size is fixed, of stack, and of spills; and how many warps of 64 these let a multiprocessor hold. In the
# machine code: products of tensor cores, fused multiply-adds, loads and stores of global memory by their bits (the last of
# fewer than 64), copies of 16 bytes into shared memory that nobody waits for, accesses of local memory, and accesses that find
# out which memory an address is in.
table() {
    local architecture
    for architecture in $shipped_architectures; do
        ptxas -arch="sm_$architecture" -v "$shipped" -o "$work/kernels.cubin" 2> "$work/report"
        cmp "$work/kernels.cubin" "$resources/kernels-sm_$architecture.cubin" >&2 || {
            echo "the shipped machine code is not what ptxas makes of the shipped PTX: run cuda/ptx.sh make" >&2
            exit 1
        }
        nvdisasm -c "$work/kernels.cubin" > "$work/code"
        awk -v architecture=$architecture '
            FNR == 1 { file++ }
            file == 1 && /^\.visible \.entry/ { name = $3; sub(/\(.*/, "", name); threads[name] = 0 }
            file == 1 && /^\.maxntid/ { threads[name] = $2 + 0 }
            file == 2 && /Compiling entry function/ { split($0, words, "\047"); name = words[2] }
            file == 2 && /bytes stack frame/ { stack[name] = $1; spilled[name] = $5 + $9 }
            file == 2 && /Used [0-9]+ registers/ {
                for (i = 1; i < NF; i++) {
                    if ($i == "Used") registers[name] = $(i + 1)
                    if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared[name] = $i
                }
            }
            file == 3 && /^\.text\./ { name = substr($1, 7); sub(/:$/, "", name) }
            file == 3 && /^ +\/\*[0-9a-f]+\*\// {
                i = $2 == "{" ? 3 : 2
                op = $(i + ($i ~ /^@/))
                if (op ~ /^HMMA/) kind = "hmma"
                else if (op ~ /^FFMA/) kind = "ffma"
                else if (op ~ /^LDGSTS.*\.128/) kind = "async"
                else if (op ~ /^(LDG|STG)\./) kind = tolower(substr(op, 1, 2)) (op ~ /\.128/ ? 128 : op ~ /\.64/ ? 64 : "")
                else if (op ~ /^(LDL|STL)/) kind = "local"
                else if (op ~ /^(LD|ST)(\.|$)/) kind = "generic"
                else next
                count[name, kind]++
            }
            function least(a, b) { return a < b ? a : b }
            # warps of 64: registers of a quarter are given to warps by 256, shared memory has 1 KB more for each block
            function warps(name) {
                most = 4 * int(16384 / (256 * int((registers[name] + 7) / 8)))
                if (threads[name] == 0) return least(64, most)
                each = threads[name] / 32
                blocks = int((architecture == 80 ? 164 : 228) * 1024 / (shared[name] + 1024))
                return each * least(least(32, blocks), int(least(64, most) / each))
            }
            END {
                split("hmma ffma ld128 ld64 ld st128 st64 st async local generic", kinds, " ")
                for (name in registers) {
                    printf "%-38s sm_%s %7s %5d %6d %5d %6d %6d", name, architecture, threads[name] ? threads[name] : "-",
                        registers[name], shared[name], warps(name), stack[name], spilled[name]
                    for (i = 1; i <= 11; i++) printf " %6d", count[name, kinds[i]]
                    print ""
                }
            }' "$shipped" "$work/report" "$work/code"
    done | LC_ALL=C sort
}

if [ "${1:-}" = table ]; then
    command -v nvdisasm > /dev/null || {
        echo "cuda/ptx.sh table: expected nvdisasm on the PATH, which shows machine code; it comes with the CUDA toolkit and in the triton wheel" >&2
        exit 1
    }
    {
        echo "# ptxas $(ptxas --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'), $(head -1 $shipped | cut -c4-); made by cuda/ptx.sh table"
        for architecture in $shipped_architectures; do
            echo "# kernels-sm_$architecture.cubin sha256 $(sha256sum < "$resources/kernels-sm_$architecture.cubin" | cut -d' ' -f1)"
        done
        printf '%-38s %-5s %7s %5s %6s %5s %6s %6s' kernel on threads regs shared warps stack spills
        printf ' %6s' hmma ffma ld128 ld64 ld st128 st64 st async local generic
        echo
        table
    } > "$work/table"
    cp "$work/table" kernels.txt
    exit 0
fi

make_ptx > "$work/kernels.ptx"
assemble "$work/kernels.ptx"
case ${1:-} in
    make)
        mkdir -p $resources
        cp "$work/kernels.ptx" $shipped
        for architecture in $shipped_architectures; do cp "$work/kernels-sm_$architecture.cubin" $resources; done
        ;;
    check)
        cmp "$work/kernels.ptx" $shipped || { echo "the shipped PTX is not what the sources give: run cuda/ptx.sh make" >&2; exit 1; }
        for architecture in $shipped_architectures; do
            cmp "$work/kernels-sm_$architecture.cubin" "$resources/kernels-sm_$architecture.cubin" || {
                echo "the shipped machine code is not what the sources give: run cuda/ptx.sh make" >&2
                exit 1
            }
        done
        echo "the shipped PTX and machine code are what the sources give"
        ;;
    *)
        echo "usage: cuda/ptx.sh make | check | table" >&2
        exit 2
        ;;
esac
