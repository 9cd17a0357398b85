// Causal self-attention over a token slice without a matrix of scores in memory (FlashAttention-2, arXiv 2307.08691,
// in F32): queries of the slice, keys and values of all tokens up to its end, or of a block of earlier tokens that passes
// by (ring attention). For a query with scores s = scale * q . k:
//
//   p = exp(s - logSumExp)       y = sum p v
//   dp = dy . v                  ds = scale * p * (dp - dy . y)
//   dq = sum ds k                dk += ds q        dv += p dy
//
// A head's columns lie side by side in q, k, v, y and their gradients. Blocks are tiles of 32 rows by 8 warps, four rows each;
// blockIdx.y is the key head, blockIdx.z the sequence. Rows are keys, or the queries of all heads that share the keys: row i
// is query i / group of the group's head i % group. Sums over keys go up, sums over queries go down, tile boundaries change
// nothing: sliced and whole runs give the same bits.
#include "attention.cuh"

constexpr int TILE = 32;
constexpr int ROWS_PER_WARP = 4;
constexpr int ATTENTION_THREADS = TILE / ROWS_PER_WARP * 32;

// A row of queries: which query, and which head.
__device__ __forceinline__ int queryOf(int row, const Span& span) { return span.group == 1 ? row : row / span.group; }
__device__ __forceinline__ int headOf(int row, const Span& span) {
    return blockIdx.y * span.group + (span.group == 1 ? 0 : row % span.group);
}
__device__ __forceinline__ int rowsOfQueries(const Span& span) { return span.queries * span.group; }

// Rows of heads into shared memory, zeros from `rows` on and beyond the head's width; at(row) points at a row's head.
template <int WIDTH, class At>
__device__ __forceinline__ void loadRows(float* tile, int pitch, int rows, const Span& span, At at) {
#pragma unroll 4
    for (int i = threadIdx.x; i < TILE * WIDTH; i += ATTENTION_THREADS) {
        int row = i / WIDTH, j = i % WIDTH;
        tile[row * pitch + j] = row < rows && j < span.headWidth ? at(row)[j] : 0;
    }
}

template <int WIDTH>
__device__ __forceinline__ void loadKeys(float* tile, int pitch, const ConstFloats& from, int firstKey, int keys,
                                         const Span& span) {
    loadRows<WIDTH>(tile, pitch, keys, span,
                    [&](int row) { return from.row(span.inKeys(firstKey + row)) + span.columnOfKeys(); });
}

// The head of a row of queries where queries lie, and in the unit.
template <class T>
__device__ __forceinline__ T* inQueries(const View<T>& view, int row, const Span& span) {
    return view.row(span.inQueries(queryOf(row, span))) + headOf(row, span) * span.headWidth;
}
template <class T>
__device__ __forceinline__ T* inUnit(const View<T>& view, int row, const Span& span) {
    return view.row(span.inUnit(queryOf(row, span))) + headOf(row, span) * span.headWidth;
}

// result[r] = row r of this warp . row `lane` of the other tile
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
    didOperations(2 * ROWS_PER_WARP * headWidth);
}

// sum[r] += weights[r] of lane i * row i of a tile, rows up or down.
template <int WIDTH, int PITCH, bool UP>
__device__ __forceinline__ void addRows(float (&sum)[ROWS_PER_WARP][WIDTH / 32], const float (&weights)[ROWS_PER_WARP],
                                        const float* tile) {
    // one load brings the weights of all four rows, where shuffles would take four instructions
    __shared__ float4 ofThreads[ATTENTION_THREADS];
    int lane = threadIdx.x % 32;
    float4* ofLanes = ofThreads + (threadIdx.x - lane);
    __syncwarp();  // nobody needs the last ones any more
    ofLanes[lane] = make_float4(weights[0], weights[1], weights[2], weights[3]);
    __syncwarp();
#pragma unroll 2
    for (int i = 0; i < TILE; i++) {
        int row = UP ? i : TILE - 1 - i;
        float4 four = ofLanes[row];
        float weight[ROWS_PER_WARP] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int c = 0; c < WIDTH / 32; c++) {
            float value = tile[row * PITCH + c * 32 + lane];
#pragma unroll
            for (int r = 0; r < ROWS_PER_WARP; r++) {
                sum[r][c] += weight[r] * value;
            }
        }
    }
    didOperations(2 * ROWS_PER_WARP * TILE * (WIDTH / 32));
}

// Calls work(r, c, row, j) for the elements of a tile that this thread holds: column j of the head in a row.
template <int WIDTH, class Work>
__device__ __forceinline__ void eachHeld(int rows, const Span& span, Work work) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < ROWS_PER_WARP; r++) {
#pragma unroll
        for (int c = 0; c < WIDTH / 32; c++) {
            if (warp * ROWS_PER_WARP + r < rows && c * 32 + lane < span.headWidth) {
                work(r, c, warp * ROWS_PER_WARP + r, c * 32 + lane);
            }
        }
    }
}

template <int WIDTH>
__device__ __forceinline__ void attention(const ConstFloats& q, const ConstFloats& k, const ConstFloats& v, const Floats& y,
                                          const Floats& logSumExp, const Span& span) {
    float* queries = dynamicShared<float>();
    float* keys = queries + TILE * WIDTH;
    float* values = keys + TILE * (WIDTH + 1);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * TILE, rowsHere = min(TILE, rowsOfQueries(span) - first);

    loadRows<WIDTH>(queries, WIDTH, rowsHere, span, [&](int row) { return inQueries(q, first + row, span); });
    float largest[ROWS_PER_WARP], sum[ROWS_PER_WARP], out[ROWS_PER_WARP][WIDTH / 32] = {};
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        int row = first + warp * ROWS_PER_WARP + r;
        bool goesOn = span.goesOn && row < first + rowsHere;
        largest[r] = goesOn ? logSumExp.at(span.inUnit(queryOf(row, span)), headOf(row, span)) : -INFINITY;
        sum[r] = goesOn ? 1 : 0;
    }
    if (span.goesOn) {
        eachHeld<WIDTH>(rowsHere, span, [&](int r, int c, int row, int j) { out[r][c] = inUnit(y, first + row, span)[j]; });
    }
    int seen = span.keysSeenBy(queryOf(first + rowsHere - 1, span));
    for (int firstKey = span.firstSeenBy(queryOf(first, span)) / TILE * TILE; firstKey < seen; firstKey += TILE) {
        int keysHere = min(TILE, span.keys - firstKey);
        __syncthreads();
        loadKeys<WIDTH>(keys, WIDTH + 1, k, firstKey, keysHere, span);
        loadKeys<WIDTH>(values, WIDTH, v, firstKey, keysHere, span);
        __syncthreads();
        float p[ROWS_PER_WARP];
        dots<WIDTH>(p, queries, keys, span.headWidth);
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            int row = warp * ROWS_PER_WARP + r, query = queryOf(first + row, span), key = firstKey + lane;
            bool isSeen = row < rowsHere && key < span.keysSeenBy(query) && key >= span.firstSeenBy(query);
            float score = p[r] * span.scale;
            float newLargest = fmaxf(largest[r], warpMax(isSeen ? score : -INFINITY));
            // -infinity: no key was seen yet
            float kept = largest[r] == -INFINITY ? 0 : expf(largest[r] - newLargest);
            p[r] = isSeen ? expf(score - newLargest) : 0;
            sum[r] = sum[r] * kept + warpSum(p[r]);
            largest[r] = newLargest;
#pragma unroll
            for (int c = 0; c < WIDTH / 32; c++) {
                out[r][c] *= kept;
            }
        }
        addRows<WIDTH, WIDTH, true>(out, p, values);
    }
    eachHeld<WIDTH>(rowsHere, span, [&](int r, int c, int row, int j) {
        inUnit(y, first + row, span)[j] = out[r][c] / sum[r];
    });
    for (int r = 0; r < ROWS_PER_WARP; r++) {
        int row = warp * ROWS_PER_WARP + r;
        if (lane == 0 && row < rowsHere) {
            logSumExp.at(span.inUnit(queryOf(first + row, span)), headOf(first + row, span)) = largest[r] + logf(sum[r]);
        }
    }
}

// delta[row, head] = dy . y of the head; as many lanes each as have four columns. Where products round dy, so does this: what
// a query's probabilities lose and gain must cancel out. Then also rounded = dy, without gaps, unless null.
template <class T>
__device__ __forceinline__ void attentionDeltaOf(const View<const T>& dy, const ConstFloats& y, float* __restrict__ delta,
                                                 unsigned short* __restrict__ rounded, int rows, int heads, int headWidth,
                                                 int rounds) {
    int lanes = headWidth <= 64 ? 16 : 32, lane = threadIdx.x % lanes;
    int at = blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
    bool isThere = at < rows * heads;
    int row = isThere ? at / heads : 0, column = at % heads * headWidth, j = lane * 4;
    float sum = 0;
    auto add = [&](int first, auto gradients) {
        if (rounds) {
#pragma unroll
            for (int n = 0; n < gradients.COUNT; n++) {
                gradients.of[n] = fromBFloat16(toBFloat16(gradients.of[n]));
            }
        }
        auto results = gradients.at(&y.at(row, column + first));
#pragma unroll
        for (int n = 0; n < gradients.COUNT; n++) {
            sum += gradients.of[n] * results.of[n];
        }
        if (rounded) {
            gradients.storeAt(rounded + static_cast<long long>(at) * headWidth + first);
        }
    };
    if (isThere && j < headWidth) {
        if (headWidth % 4 == 0 && isAligned(dy) && isAligned(y)) {
            add(j, Neighbours<4>::at(&dy.at(row, column + j)));
        } else {
            for (int n = j; n < headWidth && n < j + 4; n++) {
                add(n, Neighbours<1>::at(&dy.at(row, column + n)));
            }
        }
    }
    for (int bits = lanes / 2; bits > 0; bits >>= 1) {
        sum += __shfl_xor_sync(ALL_LANES, sum, bits);
    }
    if (isThere && lane == 0) {
        delta[at] = sum;
    }
}

extern "C" __global__ void attentionDelta(ConstFloats dy, ConstFloats y, float* __restrict__ delta,
                                          unsigned short* __restrict__ rounded, int rows, int heads, int headWidth,
                                          int rounds) {
    attentionDeltaOf(dy, y, delta, rounded, rows, heads, headWidth, rounds);
}

// Same of a dy that is rounded.
extern "C" __global__ void attentionDeltaOfHalves(ConstHalves dy, ConstFloats y, float* __restrict__ delta, int rows, int heads,
                                                  int headWidth) {
    attentionDeltaOf(dy, y, delta, nullptr, rows, heads, headWidth, 0);
}

// dq of a tile of rows of queries.
template <int WIDTH>
__device__ __forceinline__ void queryGradient(const ConstFloats& q, const ConstFloats& k, const ConstFloats& v,
                                              const Known& known, const Floats& dq, const Span& span) {
    float* queries = dynamicShared<float>();
    float* gradients = queries + TILE * WIDTH;
    float* keys = gradients + TILE * WIDTH;
    float* values = keys + TILE * (WIDTH + 1);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = blockIdx.x * TILE, rowsHere = min(TILE, rowsOfQueries(span) - first);

    loadRows<WIDTH>(queries, WIDTH, rowsHere, span, [&](int row) { return inQueries(q, first + row, span); });
    loadRows<WIDTH>(gradients, WIDTH, rowsHere, span, [&](int row) { return inUnit(known.dy, first + row, span); });
    float sum[ROWS_PER_WARP][WIDTH / 32] = {};
    if (span.goesOn) {
        eachHeld<WIDTH>(rowsHere, span, [&](int r, int c, int row, int j) { sum[r][c] = inQueries(dq, first + row, span)[j]; });
    }
    int seen = span.keysSeenBy(queryOf(first + rowsHere - 1, span));
    for (int firstKey = span.firstSeenBy(queryOf(first, span)) / TILE * TILE; firstKey < seen; firstKey += TILE) {
        int keysHere = min(TILE, span.keys - firstKey);
        __syncthreads();
        loadKeys<WIDTH>(keys, WIDTH + 1, k, firstKey, keysHere, span);
        loadKeys<WIDTH>(values, WIDTH + 1, v, firstKey, keysHere, span);
        __syncthreads();
        float score[ROWS_PER_WARP], ds[ROWS_PER_WARP];
        dots<WIDTH>(score, queries, keys, span.headWidth);
        dots<WIDTH>(ds, gradients, values, span.headWidth);
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            int row = warp * ROWS_PER_WARP + r, query = queryOf(first + row, span), key = firstKey + lane;
            bool isSeen = row < rowsHere && key < span.keysSeenBy(query) && key >= span.firstSeenBy(query);
            long long inUnit = span.inUnit(query);
            int head = headOf(first + row, span);
            float p = isSeen ? expf(score[r] * span.scale - known.logSumExp.at(inUnit, head)) : 0;
            ds[r] = isSeen ? span.scale * p * (ds[r] - known.delta[inUnit * span.heads + head]) : 0;
        }
        addRows<WIDTH, WIDTH + 1, true>(sum, ds, keys);
    }
    eachHeld<WIDTH>(rowsHere, span, [&](int r, int c, int row, int j) { inQueries(dq, first + row, span)[j] = sum[r][c]; });
}

// dk and dv of a tile of keys, added to what is there.
template <int WIDTH>
__device__ __forceinline__ void keyValueGradient(const ConstFloats& q, const ConstFloats& k, const ConstFloats& v,
                                                 const Known& known, const Floats& dk, const Floats& dv, const Span& span) {
    float* keys = dynamicShared<float>();
    float* values = keys + TILE * WIDTH;
    float* queries = values + TILE * WIDTH;
    float* gradients = queries + TILE * (WIDTH + 1);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int firstKey = blockIdx.x * TILE, keysHere = min(TILE, span.keys - firstKey);

    loadKeys<WIDTH>(keys, WIDTH, k, firstKey, keysHere, span);
    loadKeys<WIDTH>(values, WIDTH, v, firstKey, keysHere, span);
    float sumK[ROWS_PER_WARP][WIDTH / 32] = {}, sumV[ROWS_PER_WARP][WIDTH / 32] = {};
    if (span.goesOn) {
        eachHeld<WIDTH>(keysHere, span, [&](int r, int c, int row, int j) {
            sumK[r][c] = dk.at(span.inKeys(firstKey + row), span.columnOfKeys() + j);
            sumV[r][c] = dv.at(span.inKeys(firstKey + row), span.columnOfKeys() + j);
        });
    }
    for (int tile = (rowsOfQueries(span) - 1) / TILE; tile >= 0; tile--) {
        int first = tile * TILE, rowsHere = min(TILE, rowsOfQueries(span) - first);
        if (span.keysSeenBy(queryOf(first + rowsHere - 1, span)) <= firstKey) {
            break;
        }
        if (span.firstSeenBy(queryOf(first, span)) >= firstKey + keysHere) {
            continue;
        }
        __syncthreads();
        loadRows<WIDTH>(queries, WIDTH + 1, rowsHere, span, [&](int row) { return inQueries(q, first + row, span); });
        loadRows<WIDTH>(gradients, WIDTH + 1, rowsHere, span, [&](int row) { return inUnit(known.dy, first + row, span); });
        __syncthreads();
        float p[ROWS_PER_WARP], ds[ROWS_PER_WARP];
        dots<WIDTH>(p, keys, queries, span.headWidth);
        dots<WIDTH>(ds, values, gradients, span.headWidth);
        bool isThere = lane < rowsHere;
        int query = queryOf(first + lane, span), head = headOf(first + lane, span);
        long long row = span.inUnit(query);
        float total = isThere ? known.logSumExp.at(row, head) : 0;
        float delta = isThere ? known.delta[row * span.heads + head] : 0;
#pragma unroll
        for (int r = 0; r < ROWS_PER_WARP; r++) {
            int key = firstKey + warp * ROWS_PER_WARP + r;
            bool isSeen = isThere && key < span.keysSeenBy(query) && key >= span.firstSeenBy(query);
            p[r] = isSeen ? expf(p[r] * span.scale - total) : 0;
            ds[r] = isSeen ? span.scale * p[r] * (ds[r] - delta) : 0;
        }
        addRows<WIDTH, WIDTH + 1, false>(sumK, ds, queries);
        addRows<WIDTH, WIDTH + 1, false>(sumV, p, gradients);
    }
    eachHeld<WIDTH>(keysHere, span, [&](int r, int c, int row, int j) {
        dk.at(span.inKeys(firstKey + row), span.columnOfKeys() + j) = sumK[r][c];
        dv.at(span.inKeys(firstKey + row), span.columnOfKeys() + j) = sumV[r][c];
    });
}

// One of each for heads of up to 32, 64 and 128 columns.
#define ATTENTION_OF_WIDTH(WIDTH)                                                                                           \
    extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 2)                                                      \
        attention##WIDTH(ConstFloats q, ConstFloats k, ConstFloats v, Floats y, Floats logSumExp, Span span) {              \
        attention<WIDTH>(q, k, v, y, logSumExp, span);                                                                      \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 2)                                                      \
        queryGradient##WIDTH(ConstFloats q, ConstFloats k, ConstFloats v, Known known, Floats dq, Span span) {              \
        queryGradient<WIDTH>(q, k, v, known, dq, span);                                                                     \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(ATTENTION_THREADS, 2)                                                      \
        keyValueGradient##WIDTH(ConstFloats q, ConstFloats k, ConstFloats v, Known known, Floats dk, Floats dv,             \
                                Span span) {                                                                                \
        keyValueGradient<WIDTH>(q, k, v, known, dk, dv, span);                                                              \
    }

ATTENTION_OF_WIDTH(32)
ATTENTION_OF_WIDTH(64)
ATTENTION_OF_WIDTH(128)
