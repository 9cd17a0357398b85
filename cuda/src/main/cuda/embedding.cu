// Rows of a token table, gathered and, for the gradient, added up.
#include "tensors.cuh"

// y[row] = table[tokens[row]], zeros where another shard has the token; a block per row.
extern "C" __global__ void embedding(const int* __restrict__ tokens, TokenRows range, ConstFloats table, Floats y, int columns) {
    int row = range.of(tokens[blockIdx.x]);
    auto gather = [&](int j, auto some) {
        if (row >= 0) {
            some = some.at(&table.at(row, j));
        }
        some.storeAt(&y.at(blockIdx.x, j));
    };
    int fours = isAligned(table) && isAligned(y) ? columns / 4 : 0;
    for (int j = threadIdx.x; j < fours; j += blockDim.x) {
        gather(4 * j, Neighbours<4>{});
    }
    for (int j = 4 * fours + threadIdx.x; j < columns; j += blockDim.x) {
        gather(j, Neighbours<1>{});
    }
}

// The gradient of a table adds rows up in their order without atomics of floats: the positions of every token are listed first,
// beginning at starts[row] and ending at ends[row], and a block adds up all rows of a token. Lists are made by atomics of
// integers, in any order, and put in order where they are used.

extern "C" __global__ void clearCounts(int* __restrict__ counts, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        counts[i] = 0;
    }
}

extern "C" __global__ void countTokens(const int* __restrict__ tokens, TokenRows range, int* __restrict__ counts, int rows) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) {
        int row = range.of(tokens[i]);
        if (row >= 0) {
            atomicAdd(counts + row, 1);
        }
    }
}

constexpr int SCAN_THREADS = 1024;

// One block: starts, which hold counts, become sums of all counts before them; ends are the same to begin with.
extern "C" __global__ void startLists(int* __restrict__ starts, int* __restrict__ ends, int count) {
    __shared__ int sums[SCAN_THREADS];
    int thread = threadIdx.x, each = (count + SCAN_THREADS - 1) / SCAN_THREADS;
    int first = thread * each, end = first + each < count ? first + each : count, sum = 0;
    for (int i = first; i < end; i++) {
        sum += starts[i];
    }
    sums[thread] = sum;
    __syncthreads();
    for (int distance = 1; distance < SCAN_THREADS; distance *= 2) {
        int before = thread >= distance ? sums[thread - distance] : 0;
        __syncthreads();
        sums[thread] += before;
        __syncthreads();
    }
    int next = sums[thread] - sum;
    for (int i = first; i < end; i++) {
        int here = starts[i];
        starts[i] = next;
        ends[i] = next;
        next += here;
    }
}

// Puts every position into the list of its token, whose end moves on.
extern "C" __global__ void listPositions(const int* __restrict__ tokens, TokenRows range, int* __restrict__ ends,
                                         int* __restrict__ positions, int rows, RowOrder order) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) {
        int row = range.of(tokens[order.rowAt(i)]);
        if (row >= 0) {
            positions[atomicAdd(ends + row, 1)] = i;
        }
    }
}

constexpr int LIST_THREADS = 128;
constexpr int LISTED = 32 * LIST_THREADS; // positions of which a block looks at once

// The lists as a block uses them: some of its positions in their order, as rows of dy.
struct Listed {
    int rows[LISTED];
    unsigned bits[LIST_THREADS];
    int warps[LIST_THREADS / 32];
    int count;
};

// A list of at most 32 positions, by the first warp.
__device__ __forceinline__ void putInOrder(Listed& listed, const int* positions, int count, const RowOrder& order) {
    if (threadIdx.x < 32) {
        int lane = threadIdx.x, position = lane < count ? positions[lane] : 0x7fffffff, before = 0;
        for (int other = 0; other < count; other++) {
            before += __shfl_sync(ALL_LANES, position, other) < position;
        }
        if (lane < count) {
            listed.rows[before] = order.rowAt(position);
        }
        if (lane == 0) {
            listed.count = count;
        }
    }
    __syncthreads();
}

// Those positions of a list that lie in a window: a bit for each, counted.
__device__ __forceinline__ void putInOrder(Listed& listed, const int* positions, int count, int window, const RowOrder& order) {
    int thread = threadIdx.x;
    listed.bits[thread] = 0;
    __syncthreads();
    for (int i = thread; i < count; i += LIST_THREADS) {
        int place = positions[i] - window;
        if (place >= 0 && place < LISTED) {
            atomicOr(&listed.bits[place / 32], 1u << place % 32);
        }
    }
    __syncthreads();
    unsigned bits = listed.bits[thread];
    int own = __popc(bits), before = own;
    for (int distance = 1; distance < 32; distance *= 2) {
        int more = __shfl_up_sync(ALL_LANES, before, distance);
        before += thread % 32 >= distance ? more : 0;
    }
    if (thread % 32 == 31) {
        listed.warps[thread / 32] = before;
    }
    __syncthreads();
    int at = before - own;
    for (int warp = 0; warp < thread / 32; warp++) {
        at += listed.warps[warp];
    }
    for (; bits != 0; bits &= bits - 1) {
        listed.rows[at++] = order.rowAt(window + 32 * thread + __ffs(bits) - 1);
    }
    if (thread == LIST_THREADS - 1) {
        listed.count = at;
    }
    __syncthreads();
}

// A block per listed position; that of a list's first adds up its token's rows of dy, in their order.
extern "C" __global__ void embeddingBackward(ConstFloats dy, const int* __restrict__ tokens, TokenRows range, Floats dTable,
                                             const int* __restrict__ starts, const int* __restrict__ ends,
                                             const int* __restrict__ positions, int rows, int columns, RowOrder order) {
    __shared__ Listed listed;
    int item = blockIdx.x;
    if (item >= ends[range.count - 1]) {
        return;
    }
    int row = range.of(tokens[order.rowAt(positions[item])]);
    if (starts[row] != item) {
        return;
    }
    int count = ends[row] - item;
    bool aligned = isAligned(dy) && isAligned(dTable) && columns % 4 == 0;
    auto addRows = [&] {
        auto down = [&](int j, auto sum) {
            constexpr int MANY = 8;
            sum = sum.at(&dTable.at(row, j));
            auto add = [&](auto more) {
#pragma unroll
                for (int n = 0; n < sum.COUNT; n++) {
                    sum.of[n] += more.of[n];
                }
            };
            int i = 0;
            for (; i + MANY <= listed.count; i += MANY) {
                decltype(sum) held[MANY];
#pragma unroll
                for (int k = 0; k < MANY; k++) {
                    held[k] = sum.at(&dy.at(listed.rows[i + k], j));
                }
#pragma unroll
                for (int k = 0; k < MANY; k++) {
                    add(held[k]);
                }
            }
            for (; i < listed.count; i++) {
                add(sum.at(&dy.at(listed.rows[i], j)));
            }
            sum.storeAt(&dTable.at(row, j));
        };
        if (aligned) {
            for (int j = 4 * threadIdx.x; j < columns; j += 4 * LIST_THREADS) {
                down(j, Neighbours<4>());
            }
        } else {
            for (int j = threadIdx.x; j < columns; j += LIST_THREADS) {
                down(j, Neighbours<1>());
            }
        }
    };
    if (count <= 32) {
        putInOrder(listed, positions + item, count, order);
        addRows();
        return;
    }
    for (int window = 0; window < rows; window += LISTED) {
        putInOrder(listed, positions + item, count, window, order);
        addRows();
        __syncthreads();
    }
}
