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

// Same, and y = dy, rounded.
extern "C" __global__ void biasGradientRounded(ConstFloats dy, Halves y, float* __restrict__ partial, int columns,
                                               RowOrder order) {
    sumBlocks(partial, columns, isAligned(dy) && isAligned(y), order, [&](int i, int j, auto some) {
        some = some.at(&dy.at(i, j));
        some.storeAt(&y.at(i, j));
        return some;
    });
}

// sum += partial[0] + partial[1] + ..., one after the other.
extern "C" __global__ void addInOrder(const float* __restrict__ partial, long long stride, int count, float* __restrict__ sum,
                                      int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    float total = sum[column];
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        total += partial[i * stride + column];
    }
    sum[column] = total;
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

// partial[i] = the sum of squares of the i-th run of 16384 elements.
extern "C" __global__ void squaresOfRuns(const float* __restrict__ x, long long elements, double* __restrict__ partial) {
    long long first = static_cast<long long>(blockIdx.x) * SQUARES_PER_BLOCK;
    double sum = 0;
    for (int i = threadIdx.x; i < SQUARES_PER_BLOCK && first + i < elements; i += SQUARES_THREADS) {
        double value = x[first + i];
        sum += value * value;
    }
    sum = blockSumOfDoubles(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
    }
}

// One block: result = the sum of all.
extern "C" __global__ void sumOfRuns(const double* __restrict__ partial, int count, double* __restrict__ result) {
    double sum = 0;
    for (int i = threadIdx.x; i < count; i += SQUARES_THREADS) {
        sum += partial[i];
    }
    sum = blockSumOfDoubles(sum);
    if (threadIdx.x == 0) {
        *result = sum;
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
