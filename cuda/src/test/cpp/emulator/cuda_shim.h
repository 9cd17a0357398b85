// Lets g++ compile the CUDA C++ sources of the product: the words of the language, and the wrappers of
// intrinsics.cuh over emulated hardware. Included before every kernel source, in test builds only.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "grid.h"

// found in the preprocessed sources by this mark
#define __global__ __attribute__((used))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict
#define __constant__ static
// all threads of a block are fibers of one OS thread
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct alignas(8) float2 {
    float x, y;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct alignas(8) ushort4 {
    unsigned short x, y, z, w;
};

inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z, unsigned short w) { return {x, y, z, w}; }

#define threadIdx (emulator::current->index)
#define blockIdx (emulator::current->block->index)
#define blockDim (emulator::current->block->threads)
#define gridDim (emulator::current->block->grid)

namespace emulator {

template <auto FUNCTION>
struct Enlisted;

// Makes a kernel known by its name, with the sizes of its parameters.
template <class... A, void (*FUNCTION)(A...)>
struct Enlisted<FUNCTION> {
    explicit Enlisted(const char* name) {
#ifdef __SANITIZE_THREAD__
        enlistWatched({name, &call, {sizeof(A)...}, true});
#else
        enlist({name, &call, {sizeof(A)...}});
#endif
    }
    static void call(void** parameters) { spread(parameters, std::index_sequence_for<A...>{}); }
    template <size_t... I>
    static void spread(void** parameters, std::index_sequence<I...>) {
        FUNCTION(*static_cast<std::remove_const_t<A>*>(parameters[I])...);
    }
};

using Mailboxes = unsigned char (*)[64];

// Every lane of the mask leaves a value for the others.
template <class T>
Mailboxes exchange(unsigned mask, const T& value) {
    static_assert(sizeof(T) <= 64);
    Barrier& barrier = warpBarrier(mask);
    Mailboxes boxes = barrier.mailbox[barrier.generation & 1];
    memcpy(boxes[current->lane], &value, sizeof(T));
    synchronizeWarp(barrier, false);
    return boxes;
}

template <class T>
T received(Mailboxes boxes, int lane) {
    T value;
    memcpy(&value, boxes[lane], sizeof(T));
    return value;
}

}  // namespace emulator

inline void __syncthreads() { emulator::synchronizeBlock(); }
inline void __syncwarp(unsigned mask = ~0u) { emulator::synchronizeWarp(emulator::warpBarrier(mask), true); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
    return emulator::received<T>(emulator::exchange(mask, value), lane & 31);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits) {
    int lane = emulator::current->lane;
    return emulator::received<T>(emulator::exchange(mask, value), lane ^ bits);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int distance) {
    int lane = emulator::current->lane;
    return emulator::received<T>(emulator::exchange(mask, value), lane < distance ? lane : lane - distance);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned lanes = mask & emulator::current->warp->alive;
    auto boxes = emulator::exchange(mask, predicate);
    unsigned votes = 0;
    for (int lane = 0; lane < 32; lane++) {
        if (lanes >> lane & 1 && emulator::received<int>(boxes, lane)) {
            votes |= 1u << lane;
        }
    }
    return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(bits); }
inline int atomicAdd(int* at, int more) { return std::atomic_ref<int>(*at).fetch_add(more); }
inline unsigned atomicOr(unsigned* at, unsigned bits) { return std::atomic_ref<unsigned>(*at).fetch_or(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
// no compiler may make it part of a fused sum
__attribute__((noinline)) inline float __fmul_rn(float x, float y) { return x * y; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}
inline float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
using std::max;
using std::min;

// ---- what intrinsics.cuh says in PTX ------------------------------------------------------------------------

template <class T>
T* dynamicShared() {
    return reinterpret_cast<T*>(emulator::current->block->dynamicShared);
}

namespace emulator {
inline float widened(unsigned half) { return __uint_as_float(half << 16); }
struct Fragments {
    unsigned a[4], b[2];
};
}  // namespace emulator

// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32, with the fragments of the PTX ISA
inline void multiplyTiles(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    using emulator::Fragments;
    int lane = emulator::current->lane, group = lane >> 2, inGroup = lane & 3;
#ifdef __SANITIZE_THREAD__
    emulator::watchOperations(2.0 * 16 * 8 * 16 / 32);
#endif
    auto boxes = emulator::exchange(~0u, Fragments{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
    for (int i = 0; i < 4; i++) {
        int row = group + (i & 2 ? 8 : 0), column = inGroup * 2 + (i & 1);
        float sum = d[i];
        for (int k = 0; k < 16; k++) {
            auto left = emulator::received<Fragments>(boxes, (row & 7) * 4 + (k & 7) / 2);
            auto right = emulator::received<Fragments>(boxes, column * 4 + (k & 7) / 2);
            unsigned x = left.a[(row >= 8) + (k >= 8) * 2], y = right.b[k >= 8];
            sum += emulator::widened(k & 1 ? x >> 16 : x & 0xffff) * emulator::widened(k & 1 ? y >> 16 : y & 0xffff);
        }
        d[i] = sum;
    }
}

inline void didOperations([[maybe_unused]] int operations) {
#ifdef __SANITIZE_THREAD__
    emulator::watchOperations(operations);
#endif
}

// cp.async of 16 bytes
inline void beginCopy(void* to, const void* from, bool isThere) { emulator::beginCopyOf16(to, from, isThere); }
inline void finishCopies() { emulator::finishCopiesOf16(); }

template <class T>
T* inGlobal(T* address) {
    return address;
}

inline int onlyHere(int number) { return number; }

// ldmatrix.sync.aligned.m8n8.x4.shared.b16: lane i gives the address of row i % 8 of matrix i / 8
inline void loadTiles(unsigned (&tiles)[4], const void* row) {
    emulator::requireAligned(row, 16);
    int lane = emulator::current->lane;
    auto boxes = emulator::exchange(~0u, row);
    for (int matrix = 0; matrix < 4; matrix++) {
        auto from = emulator::received<const char*>(boxes, matrix * 8 + (lane >> 2));
        memcpy(&tiles[matrix], from + (lane & 3) * 4, 4);
    }
}

// Same with .trans: a thread gets column lane / 4 of rows 2 (lane % 4) and the next
inline void loadTilesTransposed(unsigned (&tiles)[4], const void* row) {
    emulator::requireAligned(row, 16);
    int lane = emulator::current->lane;
    auto boxes = emulator::exchange(~0u, row);
    for (int matrix = 0; matrix < 4; matrix++) {
        unsigned halves = 0;
        for (int i = 0; i < 2; i++) {
            auto from = emulator::received<const unsigned short*>(boxes, matrix * 8 + (lane & 3) * 2 + i);
            halves |= static_cast<unsigned>(from[lane >> 2]) << 16 * i;
        }
        tiles[matrix] = halves;
    }
}

// cvt.rn.bf16x2.f32, whose NaN has all bits
inline unsigned pairOfHalves(float first, float second) {
    auto rounded = [](float value) {
        unsigned bits = __float_as_uint(value);
        return value != value ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    };
    return rounded(first) | rounded(second) << 16;
}

// ex2.approx.ftz.f32
inline float powerOfTwo(float x) {
    float power = std::exp2(x);
    return power < 0x1p-126f ? 0 : power;
}
