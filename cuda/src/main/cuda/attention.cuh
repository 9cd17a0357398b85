// What the kernels of attention are told, in F32 (attention.cu) and on tensor cores (attention_halves.cu).
#pragma once
#include "tensors.cuh"

// Which queries see which keys: query i those from firstSeenByFirst + i up to, and without, seenByFirst + i. So many heads
// of queries as a group has share a key head, which is blockIdx.y.
struct Span {
    int queries, keys, seenByFirst, firstSeenByFirst;
    // rows from one sequence to the next: where q lies, where k and v lie, and in y, dy and logSumExp
    int rowsOfQueries, rowsOfKeys, rowsOfUnit;
    int headWidth, heads, group;
    float scale;
    int goesOn;  // whether results start from what is there

    __device__ int columnOfKeys() const { return blockIdx.y * headWidth; }
    __device__ long long inQueries(int query) const { return static_cast<long long>(blockIdx.z) * rowsOfQueries + query; }
    __device__ long long inKeys(int key) const { return static_cast<long long>(blockIdx.z) * rowsOfKeys + key; }
    __device__ long long inUnit(int query) const { return static_cast<long long>(blockIdx.z) * rowsOfUnit + query; }
    // the keys that the queries up to this one see, and where those of this one begin
    __device__ int keysSeenBy(int query) const { return min(keys, seenByFirst + query); }
    __device__ int firstSeenBy(int query) const { return max(0, firstSeenByFirst + query); }
};

// What the backward knows of each query.
template <class T>
struct KnownOf {
    View<const T> dy;
    ConstFloats logSumExp;
    const float* delta;
};

using Known = KnownOf<float>;
