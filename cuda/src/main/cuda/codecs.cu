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

// ---- the largest elements of a row: Java's TopK --------------------------------------------------------

// What elements are compared by; what is no number is above the infinite.
__device__ __forceinline__ unsigned magnitudeOf(float value) {
    return min(__float_as_uint(value) & 0x7fffffffu, 0x7f800001u);
}

__device__ __forceinline__ void setHalf(unsigned* words, int i, unsigned half) {
    reinterpret_cast<unsigned short*>(words)[i] = static_cast<unsigned short>(half);
}

__device__ __forceinline__ int warpCount(int count) {
    for (int bits = 16; bits > 0; bits >>= 1) {
        count += __shfl_xor_sync(ALL_LANES, count, bits);
    }
    return count;
}

// A row by a warp. Halving finds the least magnitude that travels, then each 32 columns are written in order.
extern "C" __global__ void encodeLargest(ConstFloats x, Words coded, int rows, int columns, int kept, int words, int bitmap) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) {
        return;
    }
    int lane = threadIdx.x % 32;
    const float* from = x.row(row);
    unsigned* to = coded.row(row);
    unsigned largest = 0;
    for (int j = lane; j < columns; j += 32) {
        largest = max(largest, magnitudeOf(from[j]));
    }
    for (int bits = 16; bits > 0; bits >>= 1) {
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, bits));
    }
    unsigned least = 0;
    unsigned above = largest + 1;
    int countAbove = 0;
    while (above - least > 1) {
        unsigned middle = (least + above) >> 1;
        int count = 0;
        for (int j = lane; j < columns; j += 32) {
            count += magnitudeOf(from[j]) >= middle;
        }
        count = warpCount(count);
        if (count >= kept) {
            least = middle;
        }
        if (count <= kept) {
            above = middle;
            countAbove = count;
        }
    }
    unsigned scale = largest >= 0x7f800000u ? 0x3f800000u : min(max(largest & 0x7f800000u, 1u << 23), 253u << 23);
    float inverse = __uint_as_float((254u << 23) - scale);
    for (int j = lane; j < words - 1; j += 32) {
        to[j] = 0;
    }
    __syncwarp();
    unsigned before = (1u << lane) - 1;
    int ties = kept - countAbove;
    int at = 0;
    for (int first = 0; first < columns; first += 32) {
        int j = first + lane;
        unsigned magnitude = j < columns ? magnitudeOf(from[j]) : 0;
        bool tie = j < columns && magnitude + 1 == above && ties > 0;
        unsigned tied = __ballot_sync(ALL_LANES, tie);
        bool travels = j < columns && (magnitude >= above || (tie && __popc(tied & before) < ties));
        unsigned all = __ballot_sync(ALL_LANES, travels);
        if (travels) {
            int i = at + __popc(all & before);
            setHalf(to, i, toHalf(from[j] * inverse));
            if (bitmap == 0) {
                setHalf(to, kept + i, j);
            }
        }
        if (bitmap != 0 && lane == 0) {
            to[bitmap + first / 32] = all;
        }
        at += __popc(all);
        ties -= min(ties, __popc(tied));
    }
    if (lane == 0) {
        to[words - 1] = scale;
    }
}

extern "C" __global__ void decodeLargest(ConstWords coded, Floats x, int rows, int columns, int kept, int words, int bitmap) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) {
        return;
    }
    int lane = threadIdx.x % 32;
    const unsigned* from = coded.row(row);
    const unsigned short* halves = reinterpret_cast<const unsigned short*>(from);
    float* to = x.row(row);
    float scale = __uint_as_float(from[words - 1]);
    if (bitmap != 0) {
        unsigned before = (1u << lane) - 1;
        int at = 0;
        for (int first = 0; first < columns; first += 32) {
            unsigned marked = from[bitmap + first / 32];
            int i = at + __popc(marked & before);
            if (first + lane < columns) {
                to[first + lane] = marked >> lane & 1 && i < kept ? fromHalf(halves[i]) * scale : 0;
            }
            at += __popc(marked);
        }
        return;
    }
    for (int j = lane; j < columns; j += 32) {
        to[j] = 0;
    }
    __syncwarp();
    for (int i = lane; i < kept; i += 32) {
        int column = halves[kept + i];
        if (column < columns) { // whatever came
            to[column] = fromHalf(halves[i]) * scale;
        }
    }
}
