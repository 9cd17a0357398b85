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

// x, y [n, d]; keeps mean and rstd [n] for the backward.
extern "C" __global__ void layerNorm(ConstFloats x, const float* __restrict__ gain, const float* __restrict__ bias, Floats y,
                                     float* __restrict__ mean, float* __restrict__ rstd, float epsilon, int rows, int columns) {
    int row = rowOfWarp(), lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    const float* in = x.row(row);
    float sum = 0;
    for (int j = lane; j < columns; j += 32) {
        sum += in[j];
    }
    float average = warpSum(sum) / columns;
    float squares = 0;
    for (int j = lane; j < columns; j += 32) {
        squares += (in[j] - average) * (in[j] - average);
    }
    float scale = 1 / sqrtf(warpSum(squares) / columns + epsilon);
    for (int j = lane; j < columns; j += 32) {
        y.at(row, j) = (in[j] - average) * scale * gain[j] + bias[j];
    }
    if (lane == 0) {
        mean[row] = average;
        rstd[row] = scale;
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
    float sum = 0, product = 0;
    for (int j = lane; j < columns; j += 32) {
        float g = dy.at(row, j) * gain[j];
        sum += g;
        product += g * ((x.at(row, j) - average) * scale);
    }
    float averageG = warpSum(sum) / columns, averageGh = warpSum(product) / columns;
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
#pragma unroll 4
        for (int row = first; row < end; row++) {
            float gradient = dy.at(row, column);
            dGain += (x.at(row, column) - mean[row]) * rstd[row] * gradient;
            dBias += gradient;
        }
        partial[2LL * i * columns + column] = dGain;
        partial[(2LL * i + 1) * columns + column] = dBias;
    }
}

// x, y [n, heads * columns]; keeps r [n * heads] for the backward.
extern "C" __global__ void rmsNorm(ConstFloats x, const float* __restrict__ gain, Floats y, float* __restrict__ r, float epsilon,
                                   int heads, int rows, int columns) {
    int item = rowOfWarp(), lane = threadIdx.x % 32;
    if (item >= rows) {
        return;
    }
    const float* in = x.row(item / heads) + item % heads * columns;
    float* out = y.row(item / heads) + item % heads * columns;
    float squares = 0;
    for (int j = lane; j < columns; j += 32) {
        squares += in[j] * in[j];
    }
    float scale = 1 / sqrtf(warpSum(squares) / columns + epsilon);
    for (int j = lane; j < columns; j += 32) {
        out[j] = in[j] * scale * gain[j];
    }
    if (lane == 0) {
        r[item] = scale;
    }
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
