// Layer norm, a warp per row. With h = (x - mean) * rstd:
//
//   y  = h * gain + bias
//   dx += rstd * (g - average(g) - h * average(g * h)),  g = dy * gain
//   dGain += sum h * dy,  dBias += sum dy
#include "tensors.cuh"

constexpr float EPSILON = 1e-5f;

__device__ __forceinline__ int rowOfWarp() { return blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }

// x, y [n, d]; keeps mean and rstd [n] for the backward.
extern "C" __global__ void layerNorm(ConstFloats x, const float* __restrict__ gain, const float* __restrict__ bias, Floats y,
                                     float* __restrict__ mean, float* __restrict__ rstd, int rows, int columns) {
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
    float scale = 1 / sqrtf(warpSum(squares) / columns + EPSILON);
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
