// Rows of a token table, gathered and, for the gradient, added up.
#include "tensors.cuh"

// y[row] = table[tokens[row]], zeros where another shard has the token; a block per row.
extern "C" __global__ void embedding(const int* __restrict__ tokens, TokenRows range, ConstFloats table, Floats y, int columns) {
    int row = range.of(tokens[blockIdx.x]);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        y.at(blockIdx.x, j) = row < 0 ? 0 : table.at(row, j);
    }
}

// A block per position in the order of summation. The block of a token's first position adds all its rows, so that a
// row of the table is written by one block, in order, without atomics.
extern "C" __global__ void embeddingBackward(ConstFloats dy, const int* __restrict__ tokens, TokenRows range, Floats dTable,
                                             int rows, int columns, RowOrder order) {
    __shared__ int isLater;
    int position = blockIdx.x, token = tokens[order.rowAt(position)], row = range.of(token);
    if (row < 0) {
        return;
    }
    if (threadIdx.x == 0) {
        isLater = 0;
    }
    __syncthreads();
    for (int earlier = threadIdx.x; earlier < position; earlier += blockDim.x) {
        if (tokens[order.rowAt(earlier)] == token) {
            isLater = 1;
        }
    }
    __syncthreads();
    if (isLater) {
        return;
    }
    // each warp looks at 32 positions at a time: one after the other, this would take longer than all products together
    for (int first = position; first < rows; first += 32) {
        int later = first + threadIdx.x % 32;
        int from = later < rows ? order.rowAt(later) : 0;
        unsigned same = __ballot_sync(ALL_LANES, later < rows && tokens[from] == token);
        for (; same != 0; same &= same - 1) {
            int next = __shfl_sync(ALL_LANES, from, __ffs(same) - 1);
            for (int j = threadIdx.x; j < columns; j += blockDim.x) {
                dTable.at(row, j) += dy.at(next, j);
            }
        }
    }
}
