// Cross-entropy over a vocabulary that shards may divide; a block per row of logits.
//
// What a shard knows of a row, numbers 3 i to 3 i + 2: the largest logit, the sum of exp(logit - largest), the logit of the
// target or 0 if another shard has it.
#include "tensors.cuh"

// logits become exp(logit - largest) if a gradient is wanted.
extern "C" __global__ void softmaxPart(Floats logits, const int* __restrict__ targets, TokenRows range, float* __restrict__ part,
                                       int gradient) {
    int row = blockIdx.x, columns = range.count, target = range.of(targets[row]);
    float* values = logits.row(row);
    float largest = -INFINITY;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        largest = fmaxf(largest, values[j]);
    }
    largest = blockMax(largest);
    if (threadIdx.x == 0) {
        part[3LL * row] = largest;
        part[3LL * row + 2] = target < 0 ? 0 : values[target];
    }
    // the target's logit is read before its thread overwrites it
    __syncthreads();
    float sum = 0;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        float e = expf(values[j] - largest);
        sum += e;
        if (gradient) {
            values[j] = e;
        }
    }
    sum = blockSum(sum);
    if (threadIdx.x == 0) {
        part[3LL * row + 1] = sum;
    }
}

// losses[row] = -log softmax(logits[row])[target]; logits become (softmax - onehot) * gradientScale unless that is 0.
extern "C" __global__ void crossEntropy(ConstFloats parts, int shards, int shard, Floats logits, const int* __restrict__ targets,
                                        TokenRows range, float* __restrict__ losses, float gradientScale) {
    int row = blockIdx.x;
    float largest = -INFINITY;
    for (int s = 0; s < shards; s++) {
        largest = fmaxf(largest, parts.at(s, 3 * row));
    }
    float sum = 0, logit = 0;
    for (int s = 0; s < shards; s++) {
        sum += parts.at(s, 3 * row + 1) * expf(parts.at(s, 3 * row) - largest);
        logit += parts.at(s, 3 * row + 2);
    }
    if (threadIdx.x == 0) {
        losses[row] = logf(sum) + (largest - logit);
    }
    if (gradientScale != 0) {
        float share = expf(parts.at(shard, 3 * row) - largest) / sum;
        int target = range.of(targets[row]);
        for (int j = threadIdx.x; j < range.count; j += blockDim.x) {
            float probability = logits.at(row, j) * share;
            logits.at(row, j) = (probability - (j == target ? 1 : 0)) * gradientScale;
        }
    }
}

constexpr int ROW_THREADS = 1024;
constexpr int COLUMNS_AT_ONCE = 4 * ROW_THREADS; // of all threads
constexpr int FOURS_HELD = 5;                    // of a thread, in registers
constexpr int FOURS_NEXT = 2;                    // on their way
constexpr int COLUMNS_HELD = FOURS_HELD * COLUMNS_AT_ONCE;

// A row of logits as 1024 threads see it: each has four neighbours at a time, -infinity beyond the end.
template <bool ALIGNED, class T>
struct LogitsRow {
    const T* row;
    int columns;

    // Without a branch, so that several loads are under way together.
    __device__ __forceinline__ Neighbours<4> four(int j) const {
        Neighbours<4> some;
        if constexpr (ALIGNED) {
            some = some.at(row + (j + 4 <= columns ? j : 0));
        } else {
#pragma unroll
            for (int n = 0; n < 4; n++) {
                some.of[n] = load(row + (j + n < columns ? j + n : 0));
            }
        }
#pragma unroll
        for (int n = 0; n < 4; n++) {
            some.of[n] = j + (ALIGNED ? 4 : n + 1) <= columns ? some.of[n] : -INFINITY;
        }
        return some;
    }

    // The few columns behind the last four of aligned rows: one of each of the first threads.
    __device__ __forceinline__ int restColumn() const { return columns / 4 * 4 + threadIdx.x; }
    __device__ __forceinline__ bool hasRest() const { return ALIGNED && restColumn() < columns; }
};

// The first columns of a row stay in registers, the others are read again out of the cache. Gradients may lie in the memory of
// the row's logits, in their places, or as halves of floats from its start on; halves only reach logits that were read before.
template <bool ALIGNED, class L, class T>
__device__ __forceinline__ void crossEntropyOfRow(const LogitsRow<ALIGNED, L>& row, int target, float* loss,
                                                  float gradientScale, T* gradient) {
    int columns = row.columns, first = 4 * threadIdx.x;
    Neighbours<4> held[FOURS_HELD];
#pragma unroll
    for (int i = 0; i < FOURS_HELD; i++) {
        held[i] = row.four(first + i * COLUMNS_AT_ONCE);
    }
    float logit = load(row.row + target), rest = row.hasRest() ? load(row.row + row.restColumn()) : -INFINITY;
    float largest = rest > -3e38f ? rest : -3e38f, sum = expf(rest - largest);
    auto meet = [&](const Neighbours<4>& four) {
        float most = fmaxf(fmaxf(fmaxf(four.of[0], four.of[1]), fmaxf(four.of[2], four.of[3])), largest);
        sum *= expf(largest - most);
        largest = most;
#pragma unroll
        for (int n = 0; n < 4; n++) {
            sum += expf(four.of[n] - most);
        }
    };
#pragma unroll
    for (int i = 0; i < FOURS_HELD; i++) {
        meet(held[i]);
    }
    for (int j = first + COLUMNS_HELD; j - first < columns; j += 4 * COLUMNS_AT_ONCE) {
        Neighbours<4> some[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            some[i] = row.four(j + i * COLUMNS_AT_ONCE);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            meet(some[i]);
        }
    }
    float most = blockMax(largest);
    sum = blockSum(sum * expf(largest - most));
    if (threadIdx.x == 0) {
        *loss = logf(sum) + (most - logit);
    }
    if (gradientScale == 0) {
        return;
    }
    float share = 1 / sum;
    auto slope = [&](float value, int j) {
        return (expf(value - most) * share - (j == target ? 1 : 0)) * gradientScale;
    };
    auto put = [&](Neighbours<4> four, int j) {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            four.of[n] = slope(four.of[n], j + n);
        }
        if constexpr (ALIGNED) {
            if (j + 4 <= columns) {
                four.storeAt(gradient + j);
            }
        } else {
#pragma unroll
            for (int n = 0; n < 4; n++) {
                if (j + n < columns) {
                    store(gradient + j + n, four.of[n]);
                }
            }
        }
    };
    // what comes next is read before this is written: a part's halves lie before the next part's logits
    Neighbours<4> next[FOURS_NEXT];
    auto read = [&](int j) {
#pragma unroll
        for (int i = 0; i < FOURS_NEXT; i++) {
            next[i] = row.four(first + j + i * COLUMNS_AT_ONCE);
        }
    };
    read(COLUMNS_HELD);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < FOURS_HELD; i++) {
        put(held[i], first + i * COLUMNS_AT_ONCE);
    }
    // whether halves of the whole row end before logits that are still to be read
    bool apart = columns <= 2 * (COLUMNS_HELD + FOURS_NEXT * COLUMNS_AT_ONCE);
    for (int j = COLUMNS_HELD; j < columns; j += FOURS_NEXT * COLUMNS_AT_ONCE) {
        Neighbours<4> some[FOURS_NEXT];
#pragma unroll
        for (int i = 0; i < FOURS_NEXT; i++) {
            some[i] = next[i];
        }
        read(j + FOURS_NEXT * COLUMNS_AT_ONCE);
        if (!apart) {
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < FOURS_NEXT; i++) {
            put(some[i], first + j + i * COLUMNS_AT_ONCE);
        }
    }
    if (row.hasRest()) {
        store(gradient + row.restColumn(), slope(rest, row.restColumn()));
    }
}

template <class L, class T>
__device__ __forceinline__ void crossEntropyOf(const View<const L>& logits, const int* __restrict__ targets, int columns,
                                               float* __restrict__ losses, float gradientScale, const View<T>& gradient) {
    int row = blockIdx.x;
    if (isAligned(logits) && isAligned(gradient) && columns >= 4) {
        crossEntropyOfRow(LogitsRow<true, L>{logits.row(row), columns}, targets[row], losses + row, gradientScale,
                          gradient.row(row));
    } else {
        crossEntropyOfRow(LogitsRow<false, L>{logits.row(row), columns}, targets[row], losses + row, gradientScale,
                          gradient.row(row));
    }
}

// The whole vocabulary: losses[row] = -log softmax(logits[row])[target]; gradient = (softmax - onehot) * gradientScale unless
// that is 0. A block of 1024 threads per row, whatever its length: sums keep their order.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    crossEntropyOfRows(ConstFloats logits, const int* __restrict__ targets, int columns, float* __restrict__ losses,
                       float gradientScale, Floats gradient) {
    crossEntropyOf(logits, targets, columns, losses, gradientScale, gradient);
}

// Same with gradients rounded.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    crossEntropyOfRowsRounded(ConstFloats logits, const int* __restrict__ targets, int columns, float* __restrict__ losses,
                              float gradientScale, Halves gradient) {
    crossEntropyOf(logits, targets, columns, losses, gradientScale, gradient);
}

// Same of logits in bf16, whose places the gradients take.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    crossEntropyOfHalves(ConstHalves logits, const int* __restrict__ targets, int columns, float* __restrict__ losses,
                         float gradientScale, Halves gradient) {
    crossEntropyOf(logits, targets, columns, losses, gradientScale, gradient);
}
