// Sums over rows and over whole tensors, in a fixed order.
#include "tensors.cuh"

// partial[i] = the sum of the rows of the i-th block of dy; a thread per column, a grid row per block.
extern "C" __global__ void biasGradientOfBlocks(ConstFloats dy, float* __restrict__ partial, int columns, RowOrder order) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    for (int i = blockIdx.y; i < order.levels() * order.sequences; i += gridDim.y) {
        int first = order.firstRow(i), rows = order.rowsOf(i);
        float sum = 0;
#pragma unroll 4
        for (int r = 0; r < rows; r++) {
            sum += dy.at(first + r, column);
        }
        partial[static_cast<long long>(i) * columns + column] = sum;
    }
}

// Same of halves.
extern "C" __global__ void biasGradientOfHalves(ConstHalves dy, float* __restrict__ partial, int columns, RowOrder order) {
    sumBlocks<8>(
        partial, columns, isAligned(dy), order, [&](int i, int j, auto some) { return some.at(&dy.at(i, j)); },
        [&](int, int, auto some) { return some; });
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
__device__ __forceinline__ bool isFinite(unsigned short half) { return (half & 0x7f80u) != 0x7f80u; }

template <class T>
__device__ __forceinline__ void findNonFiniteIn(const View<const T>& x, int rows, int columns, int* flag) {
    bool found = false;
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        for (long long j = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; j < columns;
             j += static_cast<long long>(gridDim.x) * blockDim.x) {
            found |= !isFinite(x.at(row, static_cast<int>(j)));
        }
    }
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
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        for (long long at = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; at < columns;
             at += static_cast<long long>(gridDim.x) * blockDim.x) {
            int j = static_cast<int>(at);
            float number = gradient.at(row, j);
            bool isWithin = fabsf(number) <= limit;
            long long integer = isWithin ? llrintf(number * 0x1p44f) : 0;
            sum.at(row, j) = accumulate ? sum.at(row, j) + integer : integer;
            gradient.at(row, j) = 0;
            found |= !isWithin;
        }
    }
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
        for (int row = 0; row < of.rows; row++) {
            for (long long j = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; j < of.columns;
                 j += static_cast<long long>(gridDim.x) * blockDim.x) {
                found |= !isFinite(x.at(row, static_cast<int>(j)));
            }
        }
    };
    if (of.isHalves) {
        look(View<const unsigned short>{static_cast<const unsigned short*>(of.data), of.stride});
    } else {
        look(ConstFloats{static_cast<const float*>(of.data), of.stride});
    }
    if (found) {
        flags[of.flag] = 1;
    }
}
