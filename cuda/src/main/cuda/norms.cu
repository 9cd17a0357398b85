// Norms. Layer norm, a warp per row, with h = (x - mean) * rstd:
//
//   y  = h * gain + bias
//   dx += rstd * (g - average(g) - h * average(g * h)),  g = dy * gain
//   dGain += sum h * dy,  dBias += sum dy
//
// RMS norm, a warp per head of a row, with h = x * r:
//
//   y  = h * gain
//   dx = r * (g - h * average(g * h)),  g = dy * gain
//   dGain += sum h * dy
#include "tensors.cuh"

__device__ __forceinline__ int rowOfWarp() { return blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }

// What a lane of a warp has of a row: columns lane, lane + 32 and so on, all on their way at the same time. Rows of more
// columns are read again where they are used, in the same order.
template <int COUNT>
struct Lane {
    static constexpr int MOST = 32 * COUNT;
    float held[COUNT];

    template <class T>
    __device__ __forceinline__ void load(const T* row, int columns) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            int j = threadIdx.x % 32 + 32 * k;
            held[k] = ::load(row + (j < columns ? j : columns - 1)); // no branch between one load and the next
        }
    }

    // element = work(column, element) for its columns; of the last column more than once.
    template <class Work>
    __device__ __forceinline__ void replace(int columns, Work work) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            int j = threadIdx.x % 32 + 32 * k;
            held[k] = work(j < columns ? j : columns - 1, held[k]);
        }
    }

    // Stores work(column, element) for its columns.
    template <class T, class Work>
    __device__ __forceinline__ void put(T* to, int columns, Work work) {
        replace(columns, work);
        each(columns, [&](int j, float value) { store(to + j, value); });
    }

    // Calls work(column, element) for its columns.
    template <class Work>
    __device__ __forceinline__ void each(int columns, Work work) const {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            int j = threadIdx.x % 32 + 32 * k;
            if (j < columns) {
                work(j, held[k]);
            }
        }
    }
};

template <>
struct Lane<0> {
    const float* row;

    __device__ __forceinline__ void load(const float* from, int) { row = from; }

    template <class T, class Work>
    __device__ __forceinline__ void put(T* to, int columns, Work work) {
        each(columns, [&](int j, float value) { store(to + j, work(j, value)); });
    }

    template <class Work>
    __device__ __forceinline__ void each(int columns, Work work) const {
#pragma unroll 8
        for (int j = threadIdx.x % 32; j < columns; j += 32) {
            work(j, row[j]);
        }
    }
};

// Calls work(Lane<n>()) for the smallest n that holds a row.
template <class Work>
__device__ __forceinline__ void withLane(int columns, Work work) {
    if (columns <= Lane<4>::MOST) { // of heads
        work(Lane<4>());
    } else if (columns <= Lane<32>::MOST) {
        work(Lane<32>());
    } else {
        work(Lane<0>());
    }
}

template <class T>
__device__ __forceinline__ void layerNormOf(const ConstFloats& x, const float* __restrict__ gain, const float* __restrict__ bias,
                                            const View<T>& y, float* __restrict__ mean, float* __restrict__ rstd, float epsilon,
                                            int rows, int columns) {
    int row = rowOfWarp();
    if (row >= rows) {
        return;
    }
    withLane(columns, [&](auto lane) {
        lane.load(x.row(row), columns);
        float sum = 0;
        lane.each(columns, [&](int, float value) { sum += value; });
        float average = warpSum(sum) / columns;
        float squares = 0;
        lane.each(columns, [&](int, float value) { squares += (value - average) * (value - average); });
        float scale = 1 / sqrtf(warpSum(squares) / columns + epsilon);
        lane.put(y.row(row), columns, [&](int j, float value) { return (value - average) * scale * gain[j] + bias[j]; });
        if (threadIdx.x % 32 == 0) {
            mean[row] = average;
            rstd[row] = scale;
        }
    });
}

// x, y [n, d]; keeps mean and rstd [n] for the backward.
extern "C" __global__ void layerNorm(ConstFloats x, const float* __restrict__ gain, const float* __restrict__ bias, Floats y,
                                     float* __restrict__ mean, float* __restrict__ rstd, float epsilon, int rows, int columns) {
    layerNormOf(x, gain, bias, y, mean, rstd, epsilon, rows, columns);
}

extern "C" __global__ void layerNormRounded(ConstFloats x, const float* __restrict__ gain, const float* __restrict__ bias,
                                            Halves y, float* __restrict__ mean, float* __restrict__ rstd, float epsilon, int rows,
                                            int columns) {
    layerNormOf(x, gain, bias, y, mean, rstd, epsilon, rows, columns);
}

// dx of a row, and inputs = h. Every product that may become part of a sum says whether it does: bits are those of a row,
// whatever kernel it is in.
template <int COUNT>
__device__ __forceinline__ void layerNormBackwardOfRow(Lane<COUNT>& gradients, Lane<COUNT>& inputs, const Lane<COUNT>& before,
                                                       const float* __restrict__ gain, float average, float scale, float* dx,
                                                       int columns) {
    gradients.replace(columns, [&](int j, float value) { return __fmul_rn(value, gain[j]); });
    inputs.replace(columns, [&](int, float value) { return __fmul_rn(value - average, scale); });
    float sum = 0, product = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        if (static_cast<int>(threadIdx.x % 32) + 32 * k < columns) {
            sum += gradients.held[k];
            product = fmaf(gradients.held[k], inputs.held[k], product);
        }
    }
    float averageG = warpSum(sum) / columns, averageGh = warpSum(product) / columns;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        int j = threadIdx.x % 32 + 32 * k;
        if (j < columns) {
            dx[j] = fmaf(scale, fmaf(-inputs.held[k], averageGh, gradients.held[k] - averageG), before.held[k]);
        }
    }
}

template <class T>
__device__ __forceinline__ void layerNormBackwardInputOf(const View<const T>& dy, const ConstFloats& x,
                                                         const float* __restrict__ gain, const float* __restrict__ mean,
                                                         const float* __restrict__ rstd, const Floats& dx, int rows,
                                                         int columns) {
    int row = rowOfWarp(), lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    float average = mean[row], scale = rstd[row];
    if (columns <= Lane<32>::MOST) {
        Lane<32> gradients, inputs, before;
        gradients.load(dy.row(row), columns);
        inputs.load(x.row(row), columns);
        before.load(dx.row(row), columns);
        layerNormBackwardOfRow(gradients, inputs, before, gain, average, scale, dx.row(row), columns);
        return;
    }
    float sum = 0, product = 0;
#pragma unroll 8
    for (int j = lane; j < columns; j += 32) {
        float g = load(&dy.at(row, j)) * gain[j];
        sum += g;
        product += g * ((x.at(row, j) - average) * scale);
    }
    float averageG = warpSum(sum) / columns, averageGh = warpSum(product) / columns;
#pragma unroll 8
    for (int j = lane; j < columns; j += 32) {
        float g = load(&dy.at(row, j)) * gain[j], h = (x.at(row, j) - average) * scale;
        dx.at(row, j) += scale * (g - averageG - h * averageGh);
    }
}

extern "C" __global__ void layerNormBackwardInput(ConstFloats dy, ConstFloats x, const float* __restrict__ gain,
                                                  const float* __restrict__ mean, const float* __restrict__ rstd, Floats dx,
                                                  int rows, int columns) {
    layerNormBackwardInputOf(dy, x, gain, mean, rstd, dx, rows, columns);
}

extern "C" __global__ void layerNormBackwardInputOfHalves(ConstHalves dy, ConstFloats x, const float* __restrict__ gain,
                                                          const float* __restrict__ mean, const float* __restrict__ rstd,
                                                          Floats dx, int rows, int columns) {
    layerNormBackwardInputOf(dy, x, gain, mean, rstd, dx, rows, columns);
}

// partial[2 i] and partial[2 i + 1] = dGain and dBias of the i-th block of rows; a thread per column.
template <class T>
__device__ __forceinline__ void layerNormBackwardWeightOf(const View<const T>& dy, const ConstFloats& x,
                                                          const float* __restrict__ mean, const float* __restrict__ rstd,
                                                          float* __restrict__ partial, int columns, const RowOrder& order) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    for (int i = blockIdx.y; i < order.levels() * order.sequences; i += gridDim.y) {
        int first = order.firstRow(i), end = first + order.rowsOf(i);
        float dGain = 0, dBias = 0;
#pragma unroll 8
        for (int row = first; row < end; row++) {
            float gradient = load(&dy.at(row, column));
            dGain = fmaf(__fmul_rn(x.at(row, column) - mean[row], rstd[row]), gradient, dGain);
            dBias += gradient;
        }
        partial[2LL * i * columns + column] = dGain;
        partial[(2LL * i + 1) * columns + column] = dBias;
    }
}

extern "C" __global__ void layerNormBackwardWeightOfBlocks(ConstFloats dy, ConstFloats x, const float* __restrict__ mean,
                                                           const float* __restrict__ rstd, float* __restrict__ partial,
                                                           int columns, RowOrder order) {
    layerNormBackwardWeightOf(dy, x, mean, rstd, partial, columns, order);
}

extern "C" __global__ void layerNormBackwardWeightOfHalves(ConstHalves dy, ConstFloats x, const float* __restrict__ mean,
                                                           const float* __restrict__ rstd, float* __restrict__ partial,
                                                           int columns, RowOrder order) {
    layerNormBackwardWeightOf(dy, x, mean, rstd, partial, columns, order);
}

// Both in one pass, a block for each block of rows and a warp for each row of so many at a time:
//
//   rows      a warp each: dx, and h and dy into shared memory        while the next rows are on their way:
//   columns   a thread each: adds up h * dy and dy of these rows, one after the other
template <int COUNT, int WARPS, class T>
__device__ __forceinline__ void layerNormBackwardOf(const View<const T>& dy, const ConstFloats& x, const float* __restrict__ gain,
                                                    const float* __restrict__ mean, const float* __restrict__ rstd,
                                                    const Floats& dx, float* __restrict__ partial, int columns,
                                                    const RowOrder& order) {
    constexpr int THREADS = 32 * WARPS;
    constexpr int SUMS = (Lane<COUNT>::MOST + THREADS - 1) / THREADS;
    float* kept = dynamicShared<float>();
    int warp = threadIdx.x / 32, i = blockIdx.x;
    int first = order.firstRow(i), rows = order.rowsOf(i);
    Lane<COUNT> gradients, inputs, before;
    float average = 0, scale = 0;
    auto load = [&](int row) {
        if (row < rows) {
            average = mean[first + row];
            scale = rstd[first + row];
            gradients.load(dy.row(first + row), columns);
            inputs.load(x.row(first + row), columns);
            before.load(dx.row(first + row), columns);
        }
    };
    load(warp);
    float dGain[SUMS] = {}, dBias[SUMS] = {};
    for (int done = 0; done < rows; done += WARPS) {
        int row = done + warp, here = min(WARPS, rows - done);
        if (row < rows) {
            float* own = kept + 2 * warp * columns;
            gradients.each(columns, [&](int j, float value) { own[columns + j] = value; });
            layerNormBackwardOfRow(gradients, inputs, before, gain, average, scale, dx.row(first + row), columns);
            inputs.each(columns, [&](int j, float value) { own[j] = value; });
        }
        __syncthreads();
        load(row + WARPS);
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            int column = threadIdx.x + k * THREADS;
            if (column < columns) {
#pragma unroll 4
                for (int r = 0; r < here; r++) {
                    float gradient = kept[(2 * r + 1) * columns + column];
                    dGain[k] = fmaf(kept[2 * r * columns + column], gradient, dGain[k]);
                    dBias[k] += gradient;
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < SUMS; k++) {
        int column = threadIdx.x + k * THREADS;
        if (column < columns) {
            partial[2LL * i * columns + column] = dGain[k];
            partial[(2LL * i + 1) * columns + column] = dBias[k];
        }
    }
}

// Of up to 768 columns.
extern "C" __global__ void __launch_bounds__(384)
    layerNormBackward768(ConstFloats dy, ConstFloats x, const float* __restrict__ gain, const float* __restrict__ mean,
                         const float* __restrict__ rstd, Floats dx, float* __restrict__ partial, int columns, RowOrder order) {
    layerNormBackwardOf<24, 12>(dy, x, gain, mean, rstd, dx, partial, columns, order);
}

// Of up to 1024 columns.
extern "C" __global__ void __launch_bounds__(256)
    layerNormBackward1024(ConstFloats dy, ConstFloats x, const float* __restrict__ gain, const float* __restrict__ mean,
                          const float* __restrict__ rstd, Floats dx, float* __restrict__ partial, int columns, RowOrder order) {
    layerNormBackwardOf<32, 8>(dy, x, gain, mean, rstd, dx, partial, columns, order);
}

// Same where dy is rounded.
extern "C" __global__ void __launch_bounds__(384)
    layerNormBackward768OfHalves(ConstHalves dy, ConstFloats x, const float* __restrict__ gain, const float* __restrict__ mean,
                               const float* __restrict__ rstd, Floats dx, float* __restrict__ partial, int columns,
                               RowOrder order) {
    layerNormBackwardOf<24, 12>(dy, x, gain, mean, rstd, dx, partial, columns, order);
}

extern "C" __global__ void __launch_bounds__(256)
    layerNormBackward1024OfHalves(ConstHalves dy, ConstFloats x, const float* __restrict__ gain, const float* __restrict__ mean,
                               const float* __restrict__ rstd, Floats dx, float* __restrict__ partial, int columns,
                               RowOrder order) {
    layerNormBackwardOf<32, 8>(dy, x, gain, mean, rstd, dx, partial, columns, order);
}

template <class T>
__device__ __forceinline__ void rmsNormOf(const ConstFloats& x, const float* __restrict__ gain, const View<T>& y,
                                          float* __restrict__ r, float epsilon, int heads, int rows, int columns) {
    int item = rowOfWarp();
    if (item >= rows) {
        return;
    }
    int first = item % heads * columns;
    withLane(columns, [&](auto lane) {
        lane.load(x.row(item / heads) + first, columns);
        float squares = 0;
        lane.each(columns, [&](int, float value) { squares += value * value; });
        float scale = 1 / sqrtf(warpSum(squares) / columns + epsilon);
        lane.put(y.row(item / heads) + first, columns, [&](int j, float value) { return value * scale * gain[j]; });
        if (threadIdx.x % 32 == 0) {
            r[item] = scale;
        }
    });
}

// x, y [n, heads * columns]; keeps r [n * heads] for the backward.
extern "C" __global__ void rmsNorm(ConstFloats x, const float* __restrict__ gain, Floats y, float* __restrict__ r, float epsilon,
                                   int heads, int rows, int columns) {
    rmsNormOf(x, gain, y, r, epsilon, heads, rows, columns);
}

extern "C" __global__ void rmsNormRounded(ConstFloats x, const float* __restrict__ gain, Halves y, float* __restrict__ r,
                                          float epsilon, int heads, int rows, int columns) {
    rmsNormOf(x, gain, y, r, epsilon, heads, rows, columns);
}

// dx may be dy.
extern "C" __global__ void rmsNormBackwardInput(ConstFloats dy, ConstFloats x, const float* __restrict__ gain,
                                                const float* __restrict__ r, Floats dx, int accumulate, int heads, int rows,
                                                int columns) {
    int item = rowOfWarp(), lane = threadIdx.x % 32;
    if (item >= rows) {
        return;
    }
    int first = item % heads * columns;
    const float* in = x.row(item / heads) + first;
    const float* gradient = dy.row(item / heads) + first;
    float* out = dx.row(item / heads) + first;
    float scale = r[item], product = 0;
    for (int j = lane; j < columns; j += 32) {
        product += gradient[j] * gain[j] * (in[j] * scale);
    }
    float average = warpSum(product) / columns;
    for (int j = lane; j < columns; j += 32) {
        float change = scale * (gradient[j] * gain[j] - in[j] * scale * average);
        out[j] = accumulate ? out[j] + change : change;
    }
}

// partial[i] = dGain of the i-th block of rows; a thread per column of a head.
extern "C" __global__ void rmsNormBackwardWeightOfBlocks(ConstFloats dy, ConstFloats x, const float* __restrict__ r,
                                                         float* __restrict__ partial, int heads, int columns,
                                                         RowOrder order) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    for (int i = blockIdx.y; i < order.levels() * order.sequences; i += gridDim.y) {
        int first = order.firstRow(i), end = first + order.rowsOf(i);
        float dGain = 0;
        for (int row = first; row < end; row++) {
#pragma unroll 4
            for (int head = 0; head < heads; head++) {
                int j = head * columns + column;
                dGain += x.at(row, j) * r[static_cast<long long>(row) * heads + head] * dy.at(row, j);
            }
        }
        partial[static_cast<long long>(i) * columns + column] = dGain;
    }
}
