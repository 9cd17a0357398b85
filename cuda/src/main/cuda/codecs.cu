// Rows of floats as words in fewer bits, and back: Java's WireCodec says how they lie.
#include "tensors.cuh"

using Words = View<unsigned>;
using ConstWords = View<const unsigned>;

// To IEEE half precision, ties to even; halves below the normal ones by a sum whose end is their rounded bits.
__device__ __forceinline__ unsigned toHalf(float value) {
    unsigned bits = __float_as_uint(value);
    unsigned sign = bits >> 16 & 0x8000u;
    unsigned magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return sign | 0x7e00u;
    }
    if (magnitude >= 0x477ff000u) { // 65,520
        return sign | 0x7c00u;
    }
    if (magnitude < 0x38800000u) {
        return sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u);
    }
    return sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
}

__device__ __forceinline__ float fromHalf(unsigned half) {
    unsigned sign = (half & 0x8000u) << 16;
    unsigned magnitude = (half & 0x7fffu) << 13;
    if (magnitude < 0x800000u) {
        return __uint_as_float(sign | __float_as_uint(static_cast<float>(magnitude >> 13) * 0x1p-24f));
    }
    return __uint_as_float(sign | (magnitude + (magnitude >= 0x0f800000u ? 0x70000000u : 0x38000000u)));
}

// A word of COUNT elements; those behind the row's end are 0. Half bytes swap places with their neighbours.
template <int COUNT, class Work>
__device__ __forceinline__ unsigned word(const float* row, int first, int columns, Work work) {
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        if (first + k < columns) {
            bits |= work(row[first + k]) << (COUNT == 8 ? k ^ 1 : k) * (32 / COUNT);
        }
    }
    return bits;
}

template <class Work>
__device__ __forceinline__ void encodeHalvesBy(ConstFloats x, Words coded, int rows, int columns, Work work) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row < rows) {
        for (int j = threadIdx.x % 32; 2 * j < columns; j += 32) {
            coded.at(row, j) = word<2>(x.row(row), 2 * j, columns, work);
        }
    }
}

extern "C" __global__ void encodeHalves(ConstFloats x, Words coded, int rows, int columns) {
    encodeHalvesBy(x, coded, rows, columns, [](float value) { return toHalf(value); });
}

extern "C" __global__ void encodeBFloats(ConstFloats x, Words coded, int rows, int columns) {
    encodeHalvesBy(x, coded, rows, columns, [](float value) { return static_cast<unsigned>(toBFloat16(value)); });
}

// A row by a warp: its largest magnitude, then integers. A row that is not finite has a scale that is not.
template <int COUNT>
__device__ __forceinline__ void encodeIntegers(ConstFloats x, Words coded, int rows, int columns) {
    constexpr int largest = (1 << (32 / COUNT - 1)) - 1;
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) {
        return;
    }
    const float* from = x.row(row);
    float most = 0;
    float notFinite = 0; // maxima leave out what is no number
    for (int j = threadIdx.x % 32; j < columns; j += 32) {
        most = fmaxf(most, fabsf(from[j]));
        notFinite += from[j] * 0;
    }
    float scale = warpMax(most) / largest + warpSum(notFinite);
    scale = scale < 0x1p-126f ? 0 : scale;
    int words = (columns + COUNT - 1) / COUNT;
    for (int j = threadIdx.x % 32; j < words; j += 32) {
        coded.at(row, j) = word<COUNT>(from, COUNT * j, columns, [&](float value) {
            float integer = scale == 0 ? 0 : rintf(value / scale);
            return static_cast<unsigned>(fabsf(integer) <= largest ? static_cast<int>(integer) : 0) & (2 * largest + 1);
        });
    }
    if (threadIdx.x % 32 == 0) {
        coded.at(row, words) = __float_as_uint(scale);
    }
}

extern "C" __global__ void encodeBytes(ConstFloats x, Words coded, int rows, int columns) {
    encodeIntegers<4>(x, coded, rows, columns);
}

extern "C" __global__ void encodeHalfBytes(ConstFloats x, Words coded, int rows, int columns) {
    encodeIntegers<8>(x, coded, rows, columns);
}

// x = work(i, j) for all columns j of row i, which is the warp's.
template <class Work>
__device__ __forceinline__ void eachOfRow(Floats x, int rows, int columns, Work work) {
    int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    for (int j = threadIdx.x % 32; i < rows && j < columns; j += 32) {
        x.at(i, j) = work(i, j);
    }
}

extern "C" __global__ void decodeHalves(ConstWords coded, Floats x, int rows, int columns) {
    eachOfRow(x, rows, columns, [&](int i, int j) { return fromHalf(coded.at(i, j / 2) >> j % 2 * 16 & 0xffffu); });
}

extern "C" __global__ void decodeBFloats(ConstWords coded, Floats x, int rows, int columns) {
    eachOfRow(x, rows, columns, [&](int i, int j) { return __uint_as_float(coded.at(i, j / 2) >> j % 2 * 16 << 16); });
}

template <int COUNT>
__device__ __forceinline__ void decodeIntegers(ConstWords coded, Floats x, int rows, int columns) {
    constexpr int bits = 32 / COUNT;
    int words = (columns + COUNT - 1) / COUNT;
    eachOfRow(x, rows, columns, [&](int i, int j) {
        int place = COUNT == 8 ? j ^ 1 : j;
        int integer = static_cast<int>(coded.at(i, j / COUNT) << (32 - bits - place % COUNT * bits)) >> (32 - bits);
        return static_cast<float>(integer) * __uint_as_float(coded.at(i, words));
    });
}

extern "C" __global__ void decodeBytes(ConstWords coded, Floats x, int rows, int columns) {
    decodeIntegers<4>(coded, x, rows, columns);
}

extern "C" __global__ void decodeHalfBytes(ConstWords coded, Floats x, int rows, int columns) {
    decodeIntegers<8>(coded, x, rows, columns);
}
