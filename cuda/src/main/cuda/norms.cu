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

    __device__ __forceinline__ void load(const float* row, int columns) {
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            int j = threadIdx.x % 32 + 32 * k;
            held[k] = row[j < columns ? j : columns - 1]; // no branch between one load and the next
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

template <int COUNT>
__device__ __forceinline__ void layerNormBackwardOfRow(const float* dy, const float* x, const float* __restrict__ gain,
                                                       float average, float scale, float* dx, int columns) {
    Lane<COUNT> gradients, inputs, before;
    gradients.load(dy, columns);
    inputs.load(x, columns);
    before.load(dx, columns);
    gradients.replace(columns, [&](int j, float value) { return value * gain[j]; });
    float sum = 0, product = 0;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        if (static_cast<int>(threadIdx.x % 32) + 32 * k < columns) {
            float g = gradients.held[k];
            sum += g;
            product += g * ((inputs.held[k] - average) * scale);
        }
    }
    float averageG = warpSum(sum) / columns, averageGh = warpSum(product) / columns;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        int j = threadIdx.x % 32 + 32 * k;
        if (j < columns) {
            float g = gradients.held[k], h = (inputs.held[k] - average) * scale;
            dx[j] = before.held[k] + scale * (g - averageG - h * averageGh);
        }
    }
}

extern "C" __global__ void layerNormBackwardInput(ConstFloats dy, ConstFloats x, const float* __restrict__ gain,
                                                  const float* __restrict__ mean, const float* __restrict__ rstd, Floats dx,
                                                  int rows, int columns) {
    int row = rowOfWarp(), lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    float average = mean[row], scale = rstd[row];
    if (columns <= Lane<32>::MOST) {
        layerNormBackwardOfRow<32>(dy.row(row), x.row(row), gain, average, scale, dx.row(row), columns);
        return;
    }
    float sum = 0, product = 0;
#pragma unroll 8
    for (int j = lane; j < columns; j += 32) {
        float g = dy.at(row, j) * gain[j];
        sum += g;
        product += g * ((x.at(row, j) - average) * scale);
    }
    float averageG = warpSum(sum) / columns, averageGh = warpSum(product) / columns;
#pragma unroll 8
    for (int j = lane; j < columns; j += 32) {
        float g = dy.at(row, j) * gain[j], h = (x.at(row, j) - average) * scale;
        dx.at(row, j) += scale * (g - averageG - h * averageGh);
    }
}

// partial[2 i] and partial[2 i + 1] = dGain and dBias of the i-th block of rows; a thread per column.
extern "C" __global__ void layerNormBackwardWeightOfBlocks(ConstFloats dy, ConstFloats x, const float* __restrict__ mean,
                                                           const float* __restrict__ rstd, float* __restrict__ partial,
                                                           int columns, RowOrder order) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) {
        return;
    }
    for (int i = blockIdx.y; i < order.levels() * order.sequences; i += gridDim.y) {
        int first = order.firstRow(i), end = first + order.rowsOf(i);
        float dGain = 0, dBias = 0;
#pragma unroll 8
        for (int row = first; row < end; row++) {
            float gradient = dy.at(row, column);
            dGain += (x.at(row, column) - mean[row]) * rstd[row] * gradient;
            dBias += gradient;
        }
        partial[2LL * i * columns + column] = dGain;
        partial[(2LL * i + 1) * columns + column] = dBias;
    }
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
