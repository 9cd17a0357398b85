// Causal self-attention over a token slice without a matrix of scores in memory (FlashAttention-2, arXiv 2307.08691,
// in F32): queries of the slice, keys and values of all tokens up to its end. For a query with scores s = scale * q . k:
//
//   p = exp(s - logSumExp)       y = sum p v
//   dp = dy . v                  ds = scale * p * (dp - dy . y)
//   dq = sum ds k                dk += ds q        dv += p dy
//
// qkv [B*T, 3d] of the micro-batch, rows b*T + t; q, k, v side by side, head h in columns h*w on of each. y, dy [n, d] of
// the unit. Blocks are tiles of 32 queries or keys by 8 warps, four rows each. Sums over keys go up, sums over queries go
// down, tile boundaries change nothing: sliced and whole runs give the same bits.
#include "tensors.cuh"

constexpr int TILE = 32;
constexpr int ROWS_PER_WARP = 4;
constexpr int ATTENTION_THREADS = TILE / ROWS_PER_WARP * 32;

struct Slice {
    int context;  // T
    int firstToken, tokens;
    int headWidth, heads;
    float scale;

    __device__ int width() const { return headWidth * heads; }
    __device__ int end() const { return firstToken + tokens; }
    // row of a token of this block's sequence, in the micro-batch and in the unit
    __device__ long long inWhole(int token) const { return static_cast<long long>(blockIdx.z) * context + token; }
    __device__ long long inUnit(int token) const { return static_cast<long long>(blockIdx.z) * tokens + token - firstToken; }
};

// Rows of a head into shared memory, zeros from `rows` on and beyond the head's width.
template <int WIDTH>
__device__ __forceinline__ void loadRows(float* tile, int pitch, const float* from, long long stride, int rows, int headWidth) {
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * WIDTH; i += ATTENTION_THREADS) {
        int row = i / WIDTH, j = i % WIDTH;
        tile[row * pitch + j] = row < rows && j < headWidth ? from[row * stride + j] : 0;
    }
}

// dots[r] = row r of this warp . row `lane` of the other tile
template <int WIDTH>
__device__ __forceinline__ void dots(float (&result)[ROWS_PER_WARP], const float* own, const float* other, int headWidth) {
    int lane = threadIdx.x % 32;
    const float* mine = own + threadIdx.x / 32 * ROWS_PER_WARP * WIDTH;
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        result[r] = 0;
    }
#pragma unroll 4
    for (int j = 0; j < headWidth; j++) {
        float value = other[lane * (WIDTH + 1) + j];
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            result[r] += mine[r * WIDTH + j] * value;
        }
    }
}

template <int WIDTH>
__device__ __forceinline__ void attention(ConstFloats qkv, Floats y, Floats logSumExp, const Slice& slice) {
    constexpr int COLUMNS = WIDTH / 32;
    float* queries = dynamicShared<float>();
    float* keys = queries + TILE * WIDTH;
    float* values = keys + TILE * (WIDTH + 1);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.y * slice.headWidth;
    int firstQuery = slice.firstToken + blockIdx.x * TILE;
    int queriesHere = min(TILE, slice.end() - firstQuery);

    loadRows<WIDTH>(queries, WIDTH, &qkv.at(slice.inWhole(firstQuery), column), qkv.stride, queriesHere, slice.headWidth);
    float largest[ROWS_PER_WARP], sum[ROWS_PER_WARP], out[ROWS_PER_WARP][COLUMNS];
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        largest[r] = -INFINITY;
        sum[r] = 0;
        for (int c = 0; c < COLUMNS; c++) {
            out[r][c] = 0;
        }
    }
    for (int firstKey = 0; firstKey < firstQuery + queriesHere; firstKey += TILE) {
        int keysHere = min(TILE, slice.end() - firstKey);
        const float* from = &qkv.at(slice.inWhole(firstKey), slice.width() + column);
        __syncthreads();
        loadRows<WIDTH>(keys, WIDTH + 1, from, qkv.stride, keysHere, slice.headWidth);
        loadRows<WIDTH>(values, WIDTH, from + slice.width(), qkv.stride, keysHere, slice.headWidth);
        __syncthreads();
        float p[ROWS_PER_WARP];
        dots<WIDTH>(p, queries, keys, slice.headWidth);
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            int query = warp * ROWS_PER_WARP + r;
            bool seen = query < queriesHere && firstKey + lane <= firstQuery + query;
            float score = p[r] * slice.scale;
            float newLargest = fmaxf(largest[r], warpMax(seen ? score : -INFINITY));
            // key 0 is seen by every query: after the first tile only rows without a query are at -infinity
            float kept = largest[r] == -INFINITY ? 0 : expf(largest[r] - newLargest);
            p[r] = seen ? expf(score - newLargest) : 0;
            sum[r] = sum[r] * kept + warpSum(p[r]);
            largest[r] = newLargest;
            for (int c = 0; c < COLUMNS; c++) {
                out[r][c] *= kept;
            }
        }
#pragma unroll 2
        for (int key = 0; key < TILE; key++) {
            float weight[ROWS_PER_WARP];
#pragma unroll
            for (int r = 0; r < ROWS_PER_WARP; r++) {
                weight[r] = __shfl_sync(ALL_LANES, p[r], key);
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                float value = values[key * WIDTH + c * 32 + lane];
#pragma unroll
                for (int r = 0; r < ROWS_PER_WARP; r++) {
                    out[r][c] += weight[r] * value;
                }
            }
        }
    }
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        int query = warp * ROWS_PER_WARP + r;
        if (query >= queriesHere) {
            continue;
        }
        long long row = slice.inUnit(firstQuery + query);
        for (int c = 0; c < COLUMNS; c++) {
            if (c * 32 + lane < slice.headWidth) {
                y.at(row, column + c * 32 + lane) = out[r][c] / sum[r];
            }
        }
        if (lane == 0) {
            logSumExp.at(row, blockIdx.y) = largest[r] + logf(sum[r]);
        }
    }
}

// delta[row, head] = dy . y of the head; a warp each.
extern "C" __global__ void attentionDelta(ConstFloats dy, ConstFloats y, float* __restrict__ delta, int rows, int heads,
                                          int headWidth) {
    int at = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (at >= rows * heads) {
        return;
    }
    int row = at / heads, column = at % heads * headWidth;
    float sum = 0;
    for (int j = lane; j < headWidth; j += 32) {
        sum += dy.at(row, column + j) * y.at(row, column + j);
    }
    sum = warpSum(sum);
    if (lane == 0) {
        delta[at] = sum;
    }
}

// dq of a tile of queries.
template <int WIDTH>
__device__ __forceinline__ void queryGradient(ConstFloats qkv, ConstFloats logSumExp, const float* __restrict__ delta,
                                              ConstFloats dy, Floats dQkv, const Slice& slice) {
    constexpr int COLUMNS = WIDTH / 32;
    float* queries = dynamicShared<float>();
    float* gradients = queries + TILE * WIDTH;
    float* keys = gradients + TILE * WIDTH;
    float* values = keys + TILE * (WIDTH + 1);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.y * slice.headWidth;
    int firstQuery = slice.firstToken + blockIdx.x * TILE;
    int queriesHere = min(TILE, slice.end() - firstQuery);
    long long unitRow = slice.inUnit(firstQuery);

    loadRows<WIDTH>(queries, WIDTH, &qkv.at(slice.inWhole(firstQuery), column), qkv.stride, queriesHere, slice.headWidth);
    loadRows<WIDTH>(gradients, WIDTH, &dy.at(unitRow, column), dy.stride, queriesHere, slice.headWidth);
    float dq[ROWS_PER_WARP][COLUMNS] = {};
    for (int firstKey = 0; firstKey < firstQuery + queriesHere; firstKey += TILE) {
        int keysHere = min(TILE, slice.end() - firstKey);
        const float* from = &qkv.at(slice.inWhole(firstKey), slice.width() + column);
        __syncthreads();
        loadRows<WIDTH>(keys, WIDTH + 1, from, qkv.stride, keysHere, slice.headWidth);
        loadRows<WIDTH>(values, WIDTH + 1, from + slice.width(), qkv.stride, keysHere, slice.headWidth);
        __syncthreads();
        float score[ROWS_PER_WARP], dp[ROWS_PER_WARP], ds[ROWS_PER_WARP];
        dots<WIDTH>(score, queries, keys, slice.headWidth);
        dots<WIDTH>(dp, gradients, values, slice.headWidth);
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            int query = warp * ROWS_PER_WARP + r;
            ds[r] = 0;
            if (query < queriesHere && firstKey + lane <= firstQuery + query) {
                float p = expf(score[r] * slice.scale - logSumExp.at(unitRow + query, blockIdx.y));
                ds[r] = slice.scale * p * (dp[r] - delta[(unitRow + query) * slice.heads + blockIdx.y]);
            }
        }
#pragma unroll 2
        for (int key = 0; key < TILE; key++) {
            float weight[ROWS_PER_WARP];
#pragma unroll
            for (int r = 0; r < ROWS_PER_WARP; r++) {
                weight[r] = __shfl_sync(ALL_LANES, ds[r], key);
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                float value = keys[key * (WIDTH + 1) + c * 32 + lane];
#pragma unroll
                for (int r = 0; r < ROWS_PER_WARP; r++) {
                    dq[r][c] += weight[r] * value;
                }
            }
        }
    }
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        int query = warp * ROWS_PER_WARP + r;
        for (int c = 0; c < COLUMNS; c++) {
            if (query < queriesHere && c * 32 + lane < slice.headWidth) {
                dQkv.at(slice.inWhole(firstQuery + query), column + c * 32 + lane) = dq[r][c];
            }
        }
    }
}

// dk and dv of a tile of keys, added to what is there.
template <int WIDTH>
__device__ __forceinline__ void keyValueGradient(ConstFloats qkv, ConstFloats logSumExp, const float* __restrict__ delta,
                                                 ConstFloats dy, Floats dQkv, const Slice& slice) {
    constexpr int COLUMNS = WIDTH / 32;
    float* keys = dynamicShared<float>();
    float* values = keys + TILE * WIDTH;
    float* queries = values + TILE * WIDTH;
    float* gradients = queries + TILE * (WIDTH + 1);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.y * slice.headWidth;
    int firstKey = blockIdx.x * TILE;
    int keysHere = min(TILE, slice.end() - firstKey);
    const float* from = &qkv.at(slice.inWhole(firstKey), slice.width() + column);

    loadRows<WIDTH>(keys, WIDTH, from, qkv.stride, keysHere, slice.headWidth);
    loadRows<WIDTH>(values, WIDTH, from + slice.width(), qkv.stride, keysHere, slice.headWidth);
    float dk[ROWS_PER_WARP][COLUMNS], dv[ROWS_PER_WARP][COLUMNS];
    auto gradientOf = [&](int r, int c, int part) -> float& {
        return dQkv.at(slice.inWhole(firstKey + warp * ROWS_PER_WARP + r), part * slice.width() + column + c * 32 + lane);
    };
    auto isThere = [&](int r, int c) {
        return warp * ROWS_PER_WARP + r < keysHere && c * 32 + lane < slice.headWidth;
    };
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            dk[r][c] = isThere(r, c) ? gradientOf(r, c, 1) : 0;
            dv[r][c] = isThere(r, c) ? gradientOf(r, c, 2) : 0;
        }
    }
    int tiles = (slice.tokens + TILE - 1) / TILE;
    for (int tile = tiles - 1; tile >= 0; tile--) {
        int firstQuery = slice.firstToken + tile * TILE;
        int queriesHere = min(TILE, slice.end() - firstQuery);
        if (firstQuery + queriesHere <= firstKey) {
            break;
        }
        long long unitRow = slice.inUnit(firstQuery);
        __syncthreads();
        loadRows<WIDTH>(queries, WIDTH + 1, &qkv.at(slice.inWhole(firstQuery), column), qkv.stride, queriesHere, slice.headWidth);
        loadRows<WIDTH>(gradients, WIDTH + 1, &dy.at(unitRow, column), dy.stride, queriesHere, slice.headWidth);
        __syncthreads();
        float p[ROWS_PER_WARP], ds[ROWS_PER_WARP];
        dots<WIDTH>(p, keys, queries, slice.headWidth);
        dots<WIDTH>(ds, values, gradients, slice.headWidth);
        bool isQuery = lane < queriesHere;
        float total = isQuery ? logSumExp.at(unitRow + lane, blockIdx.y) : 0;
        float deltaHere = isQuery ? delta[(unitRow + lane) * slice.heads + blockIdx.y] : 0;
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            bool seen = isQuery && firstKey + warp * ROWS_PER_WARP + r <= firstQuery + lane;
            p[r] = seen ? expf(p[r] * slice.scale - total) : 0;
            ds[r] = seen ? slice.scale * p[r] * (ds[r] - deltaHere) : 0;
        }
#pragma unroll 2
        for (int query = TILE - 1; query >= 0; query--) {
            float weightK[ROWS_PER_WARP], weightV[ROWS_PER_WARP];
#pragma unroll
            for (int r = 0; r < ROWS_PER_WARP; r++) {
                weightK[r] = __shfl_sync(ALL_LANES, ds[r], query);
                weightV[r] = __shfl_sync(ALL_LANES, p[r], query);
            }
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                float q = queries[query * (WIDTH + 1) + c * 32 + lane], g = gradients[query * (WIDTH + 1) + c * 32 + lane];
#pragma unroll
                for (int r = 0; r < ROWS_PER_WARP; r++) {
                    dk[r][c] += weightK[r] * q;
                    dv[r][c] += weightV[r] * g;
                }
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            if (isThere(r, c)) {
                gradientOf(r, c, 1) = dk[r][c];
                gradientOf(r, c, 2) = dv[r][c];
            }
        }
    }
}

// One of each for heads of up to 32, 64 and 128 columns.
#define ATTENTION_OF_WIDTH(WIDTH)                                                                                           \
    extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 2)                                                         \
        attention##WIDTH(ConstFloats qkv, Floats y, Floats logSumExp, Slice slice) {                                        \
        attention<WIDTH>(qkv, y, logSumExp, slice);                                                                         \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 2)                                                         \
        queryGradient##WIDTH(ConstFloats qkv, ConstFloats logSumExp, const float* delta, ConstFloats dy, Floats dQkv,       \
                             Slice slice) {                                                                                 \
        queryGradient<WIDTH>(qkv, logSumExp, delta, dy, dQkv, slice);                                                       \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 2)                                                         \
        keyValueGradient##WIDTH(ConstFloats qkv, ConstFloats logSumExp, const float* delta, ConstFloats dy, Floats dQkv,    \
                                Slice slice) {                                                                              \
        keyValueGradient<WIDTH>(qkv, logSumExp, delta, dy, dQkv, slice);                                                    \
    }

ATTENTION_OF_WIDTH(32)
ATTENTION_OF_WIDTH(64)
ATTENTION_OF_WIDTH(128)
