// What all kernels share: views of tensors, the order of rows in sums, sums over warps and blocks.
//
//   n  rows of a unit: sequences x tokens of the slice      d  model width      V  vocabulary      h  heads
//
// No kernel uses floating-point atomics: bits repeat. Every element of a result is made by one thread in one order.
#pragma once
#include "intrinsics.cuh"

// A row-major matrix; stride in elements.
template <class T>
struct View {
    T* data;
    long long stride;

    __device__ __forceinline__ T* row(long long i) const { return data + i * stride; }
    __device__ __forceinline__ T& at(long long i, int j) const { return data[i * stride + j]; }
};

using Floats = View<float>;
using ConstFloats = View<const float>;
using Halves = View<unsigned short>;
using ConstHalves = View<const unsigned short>;

// The order in which rows of a unit are added up: Java's TokenBlocks. Blocks of tokens last first, inside a block
// sequences rising, inside a sequence tokens rising. Without sequences: rows as they come.
struct RowOrder {
    int sequences, tokens, firstToken, grid;

    __device__ int levels() const { return (firstToken + tokens - 1) / grid - firstToken / grid + 1; }

    // First token, in its sequence, of blocks of a level; level 0 is summed first.
    __device__ int firstOf(int level) const {
        int line = (firstToken / grid + levels() - 1 - level) * grid;
        return line > firstToken ? line : firstToken;
    }
    __device__ int endOf(int level) const { return level == 0 ? firstToken + tokens : firstOf(level - 1); }

    // First row of the i-th block, and its rows.
    __device__ int firstRow(int i) const { return i % sequences * tokens + firstOf(i / sequences) - firstToken; }
    __device__ int rowsOf(int i) const { return endOf(i / sequences) - firstOf(i / sequences); }

    // The row that comes at this position of the whole order.
    __device__ int rowAt(int position) const {
        if (sequences == 0) {
            return position;
        }
        int level = 0;
        int last = endOf(0) - firstOf(0);
        if (position >= sequences * last) {
            position -= sequences * last;
            level = 1 + position / (sequences * grid);
            position -= (level - 1) * sequences * grid;
        }
        int rows = endOf(level) - firstOf(level);
        return position / rows * tokens + firstOf(level) - firstToken + position % rows;
    }
};

// Tokens that the rows of a table, or the columns of logits, stand for; others are another shard's.
struct TokenRows {
    int first, count;

    __device__ int of(int token) const {
        int row = token - first;
        return row >= 0 && row < count ? row : -1;
    }
};

constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ __forceinline__ float warpSum(float value) {
    for (int bits = 16; bits > 0; bits >>= 1) {
        value += __shfl_xor_sync(ALL_LANES, value, bits);
    }
    return value;
}

__device__ __forceinline__ float warpMax(float value) {
    for (int bits = 16; bits > 0; bits >>= 1) {
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, bits));
    }
    return value;
}

// Of all threads of a block of whole warps; every thread gets the result.
__device__ __forceinline__ float blockSum(float value) {
    __shared__ float sums[32];
    value = warpSum(value);
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float total = 0;
    for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; warp++) {
        total += sums[warp];
    }
    __syncthreads();
    return total;
}

__device__ __forceinline__ float blockMax(float value) {
    __shared__ float maxima[32];
    value = warpMax(value);
    if (threadIdx.x % 32 == 0) {
        maxima[threadIdx.x / 32] = value;
    }
    __syncthreads();
    float largest = maxima[0];
    for (int warp = 1; warp < static_cast<int>(blockDim.x) / 32; warp++) {
        largest = fmaxf(largest, maxima[warp]);
    }
    __syncthreads();
    return largest;
}

// bfloat16 is the upper half of a float: to nearest, ties to even; NaN stays NaN.
__device__ __forceinline__ unsigned short toBFloat16(float value) {
    unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return static_cast<unsigned short>(bits >> 16 | 0x40);
    }
    return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

__device__ __forceinline__ float fromBFloat16(unsigned short half) {
    return __uint_as_float(static_cast<unsigned>(half) << 16);
}

// Neighbouring elements of a row, loaded and stored by one instruction: memory gives whole lines sooner than words.
// Stored as halves, they are rounded.
template <int N>
struct Neighbours {
    static constexpr int COUNT = N;
    float of[N];

    static __device__ __forceinline__ Neighbours at(const float* from) {
        if constexpr (N == 4) {
            float4 four = *reinterpret_cast<const float4*>(from);
            return {four.x, four.y, four.z, four.w};
        } else {
            return {*from};
        }
    }

    static __device__ __forceinline__ Neighbours at(const unsigned short* from) {
        if constexpr (N == 4) {
            ushort4 four = *reinterpret_cast<const ushort4*>(from);
            return {fromBFloat16(four.x), fromBFloat16(four.y), fromBFloat16(four.z), fromBFloat16(four.w)};
        } else {
            return {fromBFloat16(*from)};
        }
    }

    __device__ __forceinline__ void storeAt(float* to) const {
        if constexpr (N == 4) {
            *reinterpret_cast<float4*>(to) = make_float4(of[0], of[1], of[2], of[3]);
        } else {
            *to = of[0];
        }
    }

    __device__ __forceinline__ void storeAt(unsigned short* to) const {
        if constexpr (N == 4) {
            *reinterpret_cast<uint2*>(to) = make_uint2(pairOfHalves(of[0], of[1]), pairOfHalves(of[2], of[3]));
        } else {
            *to = toBFloat16(of[0]);
        }
    }
};

__device__ __forceinline__ float load(const float* from) { return *from; }
__device__ __forceinline__ float load(const unsigned short* from) { return fromBFloat16(*from); }

__device__ __forceinline__ void store(float* to, float value) { *to = value; }
__device__ __forceinline__ void store(unsigned short* to, float value) { *to = toBFloat16(value); }

// Neighbouring elements of any type, as they are.
template <class T, int N>
struct alignas(N * sizeof(T)) Bits {
    T of[N];
};

template <int N, class T>
__device__ __forceinline__ Bits<T, N> bitsAt(const T* from) {
    return *reinterpret_cast<const Bits<T, N>*>(from);
}

template <class T, int N>
__device__ __forceinline__ void store(T* to, const Bits<T, N>& some) {
    *reinterpret_cast<Bits<T, N>*>(to) = some;
}

// Whether four elements at a time are, of every row.
template <class T>
__device__ __forceinline__ bool isAligned(const T* data, long long stride = 0) {
    return (reinterpret_cast<unsigned long long>(data) % (4 * sizeof(T)) | stride % 4) == 0;
}

template <class T>
__device__ __forceinline__ bool isAligned(const View<T>& view) {
    return isAligned(view.data, view.stride);
}

// Adds up columns of every block of rows: partial[i] = the sum over the rows r of the i-th block, one after the other, of
// finish(r, column, load(r, column, Neighbours<n>())). ROWS of them are loaded before the first is finished: a compiler cannot
// know that what is stored there is not loaded next. A thread has four columns, a grid row a block. Without partial: no sums.
template <int ROWS, class Load, class Finish>
__device__ __forceinline__ void sumBlocks(float* partial, int columns, bool aligned, const RowOrder& order, Load load,
                                          Finish finish) {
    int column = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    for (int i = blockIdx.y; i < order.levels() * order.sequences; i += gridDim.y) {
        int first = order.firstRow(i), end = first + order.rowsOf(i);
        auto down = [&](int j, auto sum) {
            for (int n = 0; n < sum.COUNT; n++) {
                sum.of[n] = 0;
            }
            auto take = [&](int r, auto loaded) {
                auto more = finish(r, j, loaded);
#pragma unroll
                for (int n = 0; n < sum.COUNT; n++) {
                    sum.of[n] += more.of[n];
                }
            };
            int r = first;
            for (; r + ROWS <= end; r += ROWS) {
                decltype(load(r, j, sum)) held[ROWS];
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    held[k] = load(r + k, j, sum);
                }
#pragma unroll
                for (int k = 0; k < ROWS; k++) {
                    take(r + k, held[k]);
                }
            }
            for (; r < end; r++) {
                take(r, load(r, j, sum));
            }
            if (partial) {
                sum.storeAt(partial + static_cast<long long>(i) * columns + j);
            }
        };
        if (aligned && columns % 4 == 0) {
            if (column < columns) {
                down(column, Neighbours<4>());
            }
        } else {
            for (int j = column; j < columns && j < column + 4; j++) {
                down(j, Neighbours<1>());
            }
        }
    }
}

// Calls work(row, column) for every element; four columns of a thread are under way together.
template <class Work>
__device__ __forceinline__ void eachElement(int rows, int columns, Work work) {
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        long long step = static_cast<long long>(gridDim.x) * blockDim.x * 4;
        for (long long first = blockIdx.x * blockDim.x * 4LL + threadIdx.x; first < columns; first += step) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                long long column = first + i * static_cast<long long>(blockDim.x);
                if (column < columns) {
                    work(row, static_cast<int>(column));
                }
            }
        }
    }
}

// Calls finish(row, column, load(row, column, Neighbours<n>())) for all elements, n at a time: four if all rows begin at 16
// bytes, else one. Four loads of a thread are under way before the first is finished: a compiler cannot know that what is
// stored there is not loaded next.
template <class Load, class Finish>
__device__ __forceinline__ void eachFour(int rows, int columns, bool aligned, Load load, Finish finish) {
    int fours = aligned ? columns / 4 : 0;
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        long long step = static_cast<long long>(gridDim.x) * blockDim.x * 4;
        for (long long first = blockIdx.x * blockDim.x * 4LL + threadIdx.x; first < fours; first += step) {
            Neighbours<4> four{};
            auto columnOf = [&](int i) { return first + i * static_cast<long long>(blockDim.x); };
            decltype(load(row, 0, four)) held[4];
#pragma unroll
            for (int i = 0; i < 4; i++) { // beyond the end the last ones again, so that no branch keeps loads apart
                long long at = columnOf(i);
                held[i] = load(row, 4 * static_cast<int>(at < fours ? at : fours - 1), four);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (columnOf(i) < fours) {
                    finish(row, 4 * static_cast<int>(columnOf(i)), held[i]);
                }
            }
        }
    }
    eachElement(rows, columns - 4 * fours, [&](int i, int j) {
        Neighbours<1> one{};
        finish(i, 4 * fours + j, load(i, 4 * fours + j, one));
    });
}

// Calls work(row, column, Neighbours<n>()) for all elements, n at a time, one after the other.
template <class Work>
__device__ __forceinline__ void eachFour(int rows, int columns, bool aligned, Work work) {
    int fours = aligned ? columns / 4 : 0;
    eachElement(rows, fours, [&](int i, int j) { work(i, 4 * j, Neighbours<4>()); });
    eachElement(rows, columns - 4 * fours, [&](int i, int j) { work(i, 4 * fours + j, Neighbours<1>()); });
}
