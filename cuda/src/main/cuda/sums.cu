// Sums over rows and over whole tensors, in a fixed order.
#include "tensors.cuh"

template <class T>
__device__ __forceinline__ void biasGradientOf(const View<const T>& dy, float* partial, int columns, const RowOrder& order) {
    sumBlocks<8>(
        partial, columns, isAligned(dy), order, [&](int i, int j, auto some) { return some.at(&dy.at(i, j)); },
        [&](int, int, auto some) { return some; });
}

// partial[i] = the sum of the rows of the i-th block of dy.
extern "C" __global__ void biasGradientOfBlocks(ConstFloats dy, float* __restrict__ partial, int columns, RowOrder order) {
    biasGradientOf(dy, partial, columns, order);
}

// Same of halves.
extern "C" __global__ void biasGradientOfHalves(ConstHalves dy, float* __restrict__ partial, int columns, RowOrder order) {
    biasGradientOf(dy, partial, columns, order);
}

// Same, and y = dy, rounded.
extern "C" __global__ void biasGradientRounded(ConstFloats dy, Halves y, float* __restrict__ partial, int columns,
                                               RowOrder order) {
    sumBlocks<8>(
        partial, columns, isAligned(dy) && isAligned(y), order,
        [&](int i, int j, auto some) { return some.at(&dy.at(i, j)); },
        [&](int i, int j, auto some) {
            some.storeAt(&y.at(i, j));
            return some;
        });
}

// sum += partial[0] + partial[1] + ..., one after the other; and those of the columns behind to more, unless that is null.
extern "C" __global__ void addInOrder(const float* __restrict__ partial, long long stride, int count, float* sum, float* more,
                                      int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= (more ? 2 : 1) * columns) {
        return;
    }
    float* to = column < columns ? sum + column : more + (column - columns);
    constexpr int AT_ONCE = 32; // on their way together: a thread has nothing else to do
    float total = *to;
    int i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE) {
        float held[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            held[k] = partial[(i + k) * stride + column];
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            total += held[k];
        }
    }
#pragma unroll 4
    for (; i < count; i++) {
        total += partial[i * stride + column];
    }
    *to = total;
}

constexpr int SQUARES_THREADS = 256;
constexpr int SQUARES_PER_BLOCK = 16384;

__device__ __forceinline__ double blockSumOfDoubles(double value) {
    __shared__ double values[SQUARES_THREADS];
    values[threadIdx.x] = value;
    __syncthreads();
    for (int half = SQUARES_THREADS / 2; half > 0; half >>= 1) {
        if (static_cast<int>(threadIdx.x) < half) {
            values[threadIdx.x] += values[threadIdx.x + half];
        }
        __syncthreads();
    }
    return values[0];
}

// A tensor of which squares are summed; its runs of 16384 elements are numbered through all tensors.
struct Squared {
    const float* data;
    long long elements;
    long long firstRun;
};

// partial[i] = the sum of squares of the i-th run.
extern "C" __global__ void squaresOfRuns(const Squared* __restrict__ tensors, int count, double* __restrict__ partial) {
    int tensor = 0;
    for (int step = 1 << (31 - __clz(count)); step > 0; step /= 2) {
        if (tensor + step < count && tensors[tensor + step].firstRun <= blockIdx.x) {
            tensor += step;
        }
    }
    const float* x = tensors[tensor].data;
    long long elements = tensors[tensor].elements;
    long long first = (blockIdx.x - tensors[tensor].firstRun) * SQUARES_PER_BLOCK;
    double sum = 0;
    auto add = [&](float value) { sum += static_cast<double>(value) * value; };
    if (first + SQUARES_PER_BLOCK <= elements) {
        constexpr int AT_ONCE = 16;
        for (int i = threadIdx.x; i < SQUARES_PER_BLOCK; i += AT_ONCE * SQUARES_THREADS) {
            float held[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                held[k] = x[first + i + k * SQUARES_THREADS];
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                add(held[k]);
            }
        }
    } else {
        for (int i = threadIdx.x; i < SQUARES_PER_BLOCK && first + i < elements; i += SQUARES_THREADS) {
            add(x[first + i]);
        }
    }
    sum = blockSumOfDoubles(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

// results[i] = the sum of all runs of tensor i; a block for each tensor.
extern "C" __global__ void sumsOfRuns(const Squared* __restrict__ tensors, const double* __restrict__ partial,
                                      double* __restrict__ results) {
    Squared tensor = tensors[blockIdx.x];
    int runs = static_cast<int>((tensor.elements + SQUARES_PER_BLOCK - 1) / SQUARES_PER_BLOCK);
    double sum = 0;
    for (int i = threadIdx.x; i < runs; i += SQUARES_THREADS) {
        sum += partial[tensor.firstRun + i];
    }
    sum = blockSumOfDoubles(sum);
    if (threadIdx.x == 0) {
        results[blockIdx.x] = sum;
    }
}

__device__ __forceinline__ bool isFinite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }

template <int N>
__device__ __forceinline__ bool areFinite(const Neighbours<N>& some) {
    bool all = true;
#pragma unroll
    for (int n = 0; n < N; n++) {
        all &= isFinite(some.of[n]);
    }
    return all;
}

template <class T>
__device__ __forceinline__ void findNonFiniteIn(const View<const T>& x, int rows, int columns, int* flag) {
    bool found = false;
    eachFour(
        rows, columns, isAligned(x), [&](int i, int j, auto some) { return some.at(&x.at(i, j)); },
        [&](int, int, auto some) { found |= !areFinite(some); });
    if (found) {
        *flag = 1;
    }
}

// Sets the flag if an element is NaN or infinite.
extern "C" __global__ void findNonFinite(ConstFloats x, int rows, int columns, int* flag) {
    findNonFiniteIn(x, rows, columns, flag);
}

extern "C" __global__ void findNonFiniteHalves(View<const unsigned short> x, int rows, int columns, int* flag) {
    findNonFiniteIn(x, rows, columns, flag);
}

// Adds gradients to sums of integers with 44 bits behind the point, or begins those, and clears the gradients: Java's
// FixedPoint. Sets the flag if an element is NaN or beyond the limit. The product with a power of two is exact.
extern "C" __global__ void foldGradient(Floats gradient, View<long long> sum, int rows, int columns, float limit,
                                        int accumulate, int* flag) {
    bool found = false;
    eachFour(rows, columns, isAligned(gradient) && isAligned(sum), [&](int i, int j, auto some) {
        some = some.at(&gradient.at(i, j));
        Bits<long long, decltype(some)::COUNT> total{};
        if (accumulate) {
            total = bitsAt<decltype(some)::COUNT>(&sum.at(i, j));
        }
#pragma unroll
        for (int n = 0; n < some.COUNT; n++) {
            bool isWithin = fabsf(some.of[n]) <= limit;
            total.of[n] += isWithin ? llrintf(some.of[n] * 0x1p44f) : 0;
            some.of[n] = 0;
            found |= !isWithin;
        }
        store(&sum.at(i, j), total);
        some.storeAt(&gradient.at(i, j));
    });
    if (found) {
        *flag = 1;
    }
}

// A tensor that is looked through; stride in elements.
struct Watched {
    const void* data;
    long long stride;
    int rows, columns, isHalves;
    int flag;
};

// Sets the flag of every tensor with an element that is NaN or infinite; a grid row for each.
extern "C" __global__ void findNonFiniteOfAll(const Watched* __restrict__ tensors, int* __restrict__ flags) {
    const Watched of = tensors[blockIdx.y];
    bool found = false;
    auto look = [&](auto x) {
        int fours = isAligned(x) ? of.columns / 4 : 0;
        for (int row = 0; row < of.rows; row++) {
            long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
            long long step = static_cast<long long>(gridDim.x) * blockDim.x;
            for (long long j = first; j < fours; j += step) {
                found |= !areFinite(Neighbours<4>::at(x.row(row) + 4 * j));
            }
            for (long long j = 4LL * fours + first; j < of.columns; j += step) {
                found |= !isFinite(load(x.row(row) + j));
            }
        }
    };
    if (of.isHalves) {
        look(View<const unsigned short>{inGlobal(static_cast<const unsigned short*>(of.data)), of.stride});
    } else {
        look(ConstFloats{inGlobal(static_cast<const float*>(of.data)), of.stride});
    }
    if (found) {
        flags[of.flag] = 1;
    }
}
