// What the kernels of attention are told, in F32 (attention.cu) and on tensor cores (attention_halves.cu).
#pragma once
#include "tensors.cuh"

// Which queries see which keys: query i the keys below seenByFirst + i.
struct Span {
    int queries, keys, seenByFirst;
    // rows from one sequence to the next: where q lies, where k and v lie, and in y, dy and logSumExp
    int rowsOfQueries, rowsOfKeys, rowsOfUnit;
    int headWidth, heads;
    float scale;
    int goesOn;  // whether results start from what is there

    __device__ int column() const { return blockIdx.y * headWidth; }
    __device__ long long inQueries(int query) const { return static_cast<long long>(blockIdx.z) * rowsOfQueries + query; }
    __device__ long long inKeys(int key) const { return static_cast<long long>(blockIdx.z) * rowsOfKeys + key; }
    __device__ long long inUnit(int query) const { return static_cast<long long>(blockIdx.z) * rowsOfUnit + query; }
    // the keys that the queries up to this one see
    __device__ int keysSeenBy(int query) const { return min(keys, seenByFirst + query); }
};

// What the backward knows of each query.
struct Known {
    ConstFloats dy, logSumExp;
    const float* delta;
};
