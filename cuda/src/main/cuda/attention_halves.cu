// Attention on tensor cores: what attention.cu computes, with factors of products rounded to bf16 (q, k, v, dy on their way
// into shared memory, p and ds once each) and everything else in F32: scores, softmax, sums, results.
//
// A block has 16 rows per warp of its own, queries or keys, and tiles of 64 of the others pass by. A warp makes the scores
// of its rows as accumulators of one product and feeds them, repacked, to the next:
//
//            passing                             width
//          +---------+                         +-------+
//   own 16 |    s    |  -> p, ds in halves ->  |  sum  |     s = own x passing^T       sum += p x passing
//          +---------+    (left factor)        +-------+
//
// Bits: a product's rows do not depend on each other, and a step of 16 keys or queries that a row does not see adds zeros.
// Keys go up from the first one; queries go down in steps of 16. Slices that begin at multiples of 16 tokens therefore give
// the bits of the whole, whatever tile a token falls into.
#include "attention.cuh"

// Tiles for heads of up to WIDTH columns; columns beyond the head's width are zeros.
template <int WIDTH, int WARPS>
struct HalfTiles {
    static constexpr int THREADS = 32 * WARPS;
    static constexpr int OWN = 16 * WARPS;
    static constexpr int PASSING = 64;
    // the eight rows of a matrix of ldmatrix lie in different banks
    static constexpr int PITCH = WIDTH + 8;
    static constexpr int DEPTHS = WIDTH / 16;
    static constexpr int COLUMNS = WIDTH / 8;

    // Rows of a head, rounded, zeros from `rows` on.
    template <int ROWS>
    static __device__ __forceinline__ void load(unsigned short* tile, const ConstFloats& from, long long firstRow, int rows,
                                                const Span& span) {
        constexpr int ROWS_AT_ONCE = THREADS / (WIDTH / 4);
        constexpr int LOADS = ROWS / ROWS_AT_ONCE < 8 ? ROWS / ROWS_AT_ONCE : 8;
        int first = threadIdx.x / (WIDTH / 4), j = threadIdx.x % (WIDTH / 4) * 4;
        const float* p = from.row(firstRow + first) + span.column() + j;
        unsigned short* to = tile + first * PITCH + j;
        int valid = span.headWidth - j;
        int stride = static_cast<int>(from.stride);
        bool isAligned = (stride | span.headWidth) % 4 == 0 && reinterpret_cast<unsigned long long>(from.data) % 16 == 0;
        if (isAligned) {
#pragma unroll 1
            for (int row = first; row < ROWS; row += LOADS * ROWS_AT_ONCE) {
                float4 held[LOADS];
#pragma unroll
                for (int i = 0; i < LOADS; i++) {
                    held[i] = row + i * ROWS_AT_ONCE < rows && valid > 0
                                  ? *reinterpret_cast<const float4*>(p + i * ROWS_AT_ONCE * stride)
                                  : make_float4(0, 0, 0, 0);
                }
#pragma unroll
                for (int i = 0; i < LOADS; i++) {
                    put(to + i * ROWS_AT_ONCE * PITCH, held[i]);
                }
                p += LOADS * ROWS_AT_ONCE * stride;
                to += LOADS * ROWS_AT_ONCE * PITCH;
            }
        } else {
#pragma unroll 1
            for (int row = first; row < ROWS; row += ROWS_AT_ONCE) {
                int there = row < rows ? valid : 0;
                put(to, make_float4(there > 0 ? p[0] : 0, there > 1 ? p[1] : 0, there > 2 ? p[2] : 0, there > 3 ? p[3] : 0));
                p += ROWS_AT_ONCE * stride;
                to += ROWS_AT_ONCE * PITCH;
            }
        }
    }

    static __device__ __forceinline__ void put(unsigned short* to, const float4& four) {
        *reinterpret_cast<uint2*>(to) = make_uint2(pairOfHalves(four.x, four.y), pairOfHalves(four.z, four.w));
    }

    // The left factor of a product: 16 rows, 16 columns from `depth * 16` on.
    static __device__ __forceinline__ void left(unsigned (&x)[4], const unsigned short* tile, int row, int depth) {
        int lane = threadIdx.x % 32;
        loadTiles(x, tile + (row + lane % 16) * PITCH + depth * 16 + lane / 16 * 8);
    }

    // s[16, 16] += x tile^T: 16 rows of a tile are columns of the product.
    static __device__ __forceinline__ void multiplyRows(float (&s)[2][4], const unsigned (&x)[4], const unsigned short* tile,
                                                        int row, int depth) {
        int lane = threadIdx.x % 32;
        unsigned both[4];
        loadTiles(both, tile + (row + lane % 8 + lane / 16 * 8) * PITCH + depth * 16 + lane / 8 % 2 * 8);
        unsigned one[2] = {both[0], both[1]}, other[2] = {both[2], both[3]};
        multiplyTiles(s[0], x, one);
        multiplyTiles(s[1], x, other);
    }

    // sum[16, WIDTH] += x tile, with 16 rows of a tile.
    static __device__ __forceinline__ void addRows(float (&sum)[COLUMNS][4], const unsigned (&x)[4], const unsigned short* tile,
                                                   int row) {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 2) {
            unsigned both[4];
            loadTilesTransposed(both, tile + (row + lane % 16) * PITCH + n * 8 + lane / 16 * 8);
            unsigned one[2] = {both[0], both[1]}, other[2] = {both[2], both[3]};
            multiplyTiles(sum[n], x, one);
            multiplyTiles(sum[n + 1], x, other);
        }
    }

    // Calls work(n, e, row, column) for the elements of sum[16, WIDTH] that this thread holds; rows count from the block's.
    template <class Work>
    static __device__ __forceinline__ void eachHeld(int rows, const Span& span, Work work) {
        int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int row = warp * 16 + lane / 4 + e / 2 * 8, j = n * 8 + lane % 4 * 2 + e % 2;
                if (row < rows && j < span.headWidth) {
                    work(n, e, row, span.column() + j);
                }
            }
        }
    }
};

// Accumulators of a product of 16 columns as the left factor of the next.
__device__ __forceinline__ void repack(unsigned (&x)[4], const float (&s)[2][4]) {
    x[0] = pairOfHalves(s[0][0], s[0][1]);
    x[1] = pairOfHalves(s[0][2], s[0][3]);
    x[2] = pairOfHalves(s[1][0], s[1][1]);
    x[3] = pairOfHalves(s[1][2], s[1][3]);
}

// Of the four lanes that hold a row of a product.
__device__ __forceinline__ float rowMax(float value) {
    value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, 1));
    return fmaxf(value, __shfl_xor_sync(ALL_LANES, value, 2));
}

__device__ __forceinline__ float rowSum(float value) {
    value += __shfl_xor_sync(ALL_LANES, value, 1);
    return value + __shfl_xor_sync(ALL_LANES, value, 2);
}

// exp(x) = 2^(x LOG2_E): exponents count in powers of two
constexpr float LOG2_E = 1.4426950408889634f;
constexpr float LN_2 = 0.6931471805599453f;

template <int WIDTH, int WARPS>
__device__ __forceinline__ void attentionOfHalves(const ConstFloats& q, const ConstFloats& k, const ConstFloats& v,
                                                  const Floats& y, const Floats& logSumExp, const Span& span) {
    using Tiles = HalfTiles<WIDTH, WARPS>;
    constexpr int STEPS = Tiles::PASSING / 16;
    unsigned short* queries = dynamicShared<unsigned short>();
    unsigned short* keys = queries + Tiles::OWN * Tiles::PITCH;
    unsigned short* values = keys + Tiles::PASSING * Tiles::PITCH;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // the last queries see most keys: their blocks start first
    int firstQuery = (gridDim.x - 1 - blockIdx.x) * Tiles::OWN, queriesHere = min(Tiles::OWN, span.queries - firstQuery);
    int firstOfWarp = firstQuery + warp * 16;

    Tiles::template load<Tiles::OWN>(queries, q, span.inQueries(firstQuery), queriesHere, span);
    // of the rows lane / 4 and 8 below it; of sums every lane has a part
    float largest[2], sum[2], out[Tiles::COLUMNS][4] = {};
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int query = warp * 16 + lane / 4 + r * 8;
        bool goesOn = span.goesOn && query < queriesHere;
        largest[r] = goesOn ? logSumExp.at(span.inUnit(firstQuery + query), blockIdx.y) * LOG2_E : -INFINITY;
        sum[r] = goesOn && lane % 4 == 0 ? 1 : 0;
    }
    if (span.goesOn) {
        Tiles::eachHeld(queriesHere, span, [&](int n, int e, int row, int column) {
            out[n][e] = y.at(span.inUnit(firstQuery + row), column);
        });
    }
    float scale = span.scale * LOG2_E;
    int seen = span.keysSeenBy(firstQuery + queriesHere - 1);
    for (int firstKey = 0; firstKey < seen; firstKey += Tiles::PASSING) {
        int keysHere = min(Tiles::PASSING, span.keys - firstKey);
        __syncthreads();
        Tiles::template load<Tiles::PASSING>(keys, k, span.inKeys(firstKey), keysHere, span);
        Tiles::template load<Tiles::PASSING>(values, v, span.inKeys(firstKey), keysHere, span);
        __syncthreads();
        if (firstOfWarp >= span.queries || firstKey >= span.keysSeenBy(firstOfWarp + 15)) {
            continue;
        }
        float s[STEPS][2][4] = {};
#pragma unroll
        for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
            unsigned x[4];
            Tiles::left(x, queries, warp * 16, depth);
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                Tiles::multiplyRows(s[step], x, keys, step * 16, depth);
            }
        }
        if (firstKey + Tiles::PASSING > span.keysSeenBy(firstOfWarp)) {
#pragma unroll
            for (int i = 0; i < STEPS * 8; i++) {
                int key = firstKey + i / 4 * 8 + lane % 4 * 2 + i % 2, query = firstOfWarp + lane / 4 + i / 2 % 2 * 8;
                float& score = s[i / 8][i / 4 % 2][i % 4];
                score = key < span.keysSeenBy(query) ? score : -INFINITY;
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float most = -INFINITY;
#pragma unroll
            for (int i = 0; i < STEPS * 4; i++) {
                most = fmaxf(most, s[i / 4][i / 2 % 2][r * 2 + i % 2]);
            }
            // every row sees the first key, so this is finite unless a score is not
            float newLargest = fmaxf(largest[r], rowMax(most) * scale);
            float kept = powerOfTwo(largest[r] - newLargest);
            largest[r] = newLargest;
            sum[r] *= kept;
#pragma unroll
            for (int i = 0; i < STEPS * 4; i++) {
                float& score = s[i / 4][i / 2 % 2][r * 2 + i % 2];
                score = powerOfTwo(score * scale - newLargest);
                sum[r] += score;
            }
#pragma unroll
            for (int n = 0; n < Tiles::COLUMNS; n++) {
                out[n][r * 2] *= kept;
                out[n][r * 2 + 1] *= kept;
            }
        }
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            unsigned p[4];
            repack(p, s[step]);
            Tiles::addRows(out, p, values, step * 16);
        }
    }
    sum[0] = rowSum(sum[0]);
    sum[1] = rowSum(sum[1]);
    Tiles::eachHeld(queriesHere, span, [&](int n, int e, int row, int column) {
        y.at(span.inUnit(firstQuery + row), column) = out[n][e] / sum[e / 2];
    });
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int query = warp * 16 + lane / 4 + r * 8;
        if (lane % 4 == 0 && query < queriesHere) {
            logSumExp.at(span.inUnit(firstQuery + query), blockIdx.y) = largest[r] * LN_2 + logf(sum[r]);
        }
    }
}

// dq of a tile of queries.
template <int WIDTH, int WARPS>
__device__ __forceinline__ void queryGradientOfHalves(const ConstFloats& q, const ConstFloats& k, const ConstFloats& v,
                                                      const Known& known, const Floats& dq, const Span& span) {
    using Tiles = HalfTiles<WIDTH, WARPS>;
    static_assert(Tiles::OWN <= 2 * Tiles::PASSING, "queries lie where keys and values will");
    unsigned short* keys = dynamicShared<unsigned short>();
    unsigned short* values = keys + Tiles::PASSING * Tiles::PITCH;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int firstQuery = (gridDim.x - 1 - blockIdx.x) * Tiles::OWN, queriesHere = min(Tiles::OWN, span.queries - firstQuery);
    int firstOfWarp = firstQuery + warp * 16;

    unsigned queries[Tiles::DEPTHS][4], gradients[Tiles::DEPTHS][4];
    Tiles::template load<Tiles::OWN>(keys, q, span.inQueries(firstQuery), queriesHere, span);
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
        Tiles::left(queries[depth], keys, warp * 16, depth);
    }
    __syncthreads();
    Tiles::template load<Tiles::OWN>(keys, known.dy, span.inUnit(firstQuery), queriesHere, span);
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
        Tiles::left(gradients[depth], keys, warp * 16, depth);
    }
    float total[2], delta[2], sum[Tiles::COLUMNS][4] = {};
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int query = warp * 16 + lane / 4 + r * 8;
        long long row = span.inUnit(firstQuery + query);
        total[r] = query < queriesHere ? known.logSumExp.at(row, blockIdx.y) * LOG2_E : 0;
        delta[r] = query < queriesHere ? known.delta[row * span.heads + blockIdx.y] : 0;
    }
    if (span.goesOn) {
        Tiles::eachHeld(queriesHere, span, [&](int n, int e, int row, int column) {
            sum[n][e] = dq.at(span.inQueries(firstQuery + row), column);
        });
    }
    float scale = span.scale * LOG2_E;
    int seen = span.keysSeenBy(firstQuery + queriesHere - 1);
    int seenByWarp = min(seen, span.keysSeenBy(firstOfWarp + 15)), seenByAll = span.keysSeenBy(firstOfWarp);
    for (int firstKey = 0; firstKey < seen; firstKey += Tiles::PASSING) {
        int keysHere = min(Tiles::PASSING, span.keys - firstKey);
        __syncthreads();
        Tiles::template load<Tiles::PASSING>(keys, k, span.inKeys(firstKey), keysHere, span);
        Tiles::template load<Tiles::PASSING>(values, v, span.inKeys(firstKey), keysHere, span);
        __syncthreads();
#pragma unroll 1
        for (int first = 0; first < Tiles::PASSING && firstKey + first < seenByWarp; first += 16) {
            float s[2][4] = {}, ds[2][4] = {};
#pragma unroll
            for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
                Tiles::multiplyRows(s, queries[depth], keys, first, depth);
                Tiles::multiplyRows(ds, gradients[depth], values, first, depth);
            }
            bool isEdge = firstKey + first + 16 > seenByAll;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int r = i / 2 % 2;
                float& score = s[i / 4][i % 4];
                if (isEdge) {
                    int key = firstKey + first + i / 4 * 8 + lane % 4 * 2 + i % 2;
                    score = key < span.keysSeenBy(firstOfWarp + lane / 4 + r * 8) ? score : -INFINITY;
                }
                float p = powerOfTwo(score * scale - total[r]);
                ds[i / 4][i % 4] = span.scale * p * (ds[i / 4][i % 4] - delta[r]);
            }
            unsigned x[4];
            repack(x, ds);
            Tiles::addRows(sum, x, keys, first);
        }
    }
    Tiles::eachHeld(queriesHere, span, [&](int n, int e, int row, int column) {
        dq.at(span.inQueries(firstQuery + row), column) = sum[n][e];
    });
}

// dk and dv of a tile of keys, added to what is there. Scores lie transposed: rows are keys, columns queries.
template <int WIDTH, int WARPS>
__device__ __forceinline__ void keyValueGradientOfHalves(const ConstFloats& q, const ConstFloats& k, const ConstFloats& v,
                                                         const Known& known, const Floats& dk, const Floats& dv,
                                                         const Span& span) {
    using Tiles = HalfTiles<WIDTH, WARPS>;
    unsigned short* keys = dynamicShared<unsigned short>();
    unsigned short* values = keys + Tiles::OWN * Tiles::PITCH;
    unsigned short* queries = values + Tiles::OWN * Tiles::PITCH;
    unsigned short* gradients = queries + Tiles::PASSING * Tiles::PITCH;
    float* totals = reinterpret_cast<float*>(gradients + Tiles::PASSING * Tiles::PITCH);
    float* deltas = totals + Tiles::PASSING;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int firstKey = blockIdx.x * Tiles::OWN, keysHere = min(Tiles::OWN, span.keys - firstKey);
    int firstOfWarp = firstKey + warp * 16;

    Tiles::template load<Tiles::OWN>(keys, k, span.inKeys(firstKey), keysHere, span);
    Tiles::template load<Tiles::OWN>(values, v, span.inKeys(firstKey), keysHere, span);
    float sumK[Tiles::COLUMNS][4] = {}, sumV[Tiles::COLUMNS][4] = {};
    Tiles::eachHeld(keysHere, span, [&](int n, int e, int row, int column) {
        sumK[n][e] = dk.at(span.inKeys(firstKey + row), column);
        sumV[n][e] = dv.at(span.inKeys(firstKey + row), column);
    });
    float scale = span.scale * LOG2_E;
    for (int tile = (span.queries - 1) / Tiles::PASSING; tile >= 0; tile--) {
        int firstQuery = tile * Tiles::PASSING, queriesHere = min(Tiles::PASSING, span.queries - firstQuery);
        if (span.keysSeenBy(firstQuery + queriesHere - 1) <= firstKey) {
            break;
        }
        __syncthreads();
        Tiles::template load<Tiles::PASSING>(queries, q, span.inQueries(firstQuery), queriesHere, span);
        Tiles::template load<Tiles::PASSING>(gradients, known.dy, span.inUnit(firstQuery), queriesHere, span);
        if (threadIdx.x < Tiles::PASSING) {
            // queries that are not there have zeros for q and dy, and add nothing
            bool isQuery = static_cast<int>(threadIdx.x) < queriesHere;
            long long row = span.inUnit(firstQuery + threadIdx.x);
            totals[threadIdx.x] = isQuery ? known.logSumExp.at(row, blockIdx.y) * LOG2_E : 0;
            deltas[threadIdx.x] = isQuery ? known.delta[row * span.heads + blockIdx.y] : 0;
        }
        __syncthreads();
        if (warp * 16 >= keysHere) {
            continue;
        }
#pragma unroll 1
        for (int first = (queriesHere - 1) / 16 * 16; first >= 0; first -= 16) {
            if (span.seenByFirst + firstQuery + first + 15 <= firstOfWarp) {
                break;
            }
            float s[2][4] = {}, ds[2][4] = {};
#pragma unroll
            for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
                unsigned x[4];
                Tiles::left(x, keys, warp * 16, depth);
                Tiles::multiplyRows(s, x, queries, first, depth);
                Tiles::left(x, values, warp * 16, depth);
                Tiles::multiplyRows(ds, x, gradients, first, depth);
            }
            bool isEdge = firstOfWarp + 15 >= span.seenByFirst + firstQuery + first;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int query = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
                float& score = s[i / 4][i % 4];
                if (isEdge) {
                    int key = firstOfWarp + lane / 4 + i / 2 % 2 * 8;
                    score = key < span.seenByFirst + firstQuery + query ? score : -INFINITY;
                }
                score = powerOfTwo(score * scale - totals[query]);
                ds[i / 4][i % 4] = span.scale * score * (ds[i / 4][i % 4] - deltas[query]);
            }
            unsigned x[4];
            repack(x, s);
            Tiles::addRows(sumV, x, gradients, first);
            repack(x, ds);
            Tiles::addRows(sumK, x, queries, first);
        }
    }
    Tiles::eachHeld(keysHere, span, [&](int n, int e, int row, int column) {
        dk.at(span.inKeys(firstKey + row), column) = sumK[n][e];
        dv.at(span.inKeys(firstKey + row), column) = sumV[n][e];
    });
}

// One of each for heads of up to 64 and 128 columns: as many warps as share a tile without spilling, which halves what is
// loaded, and blocks per multiprocessor.
#define ATTENTION_OF_HALVES(WIDTH, OF_QUERIES, OF_KEYS, BLOCKS_OF_QUERIES, BLOCKS_OF_KEYS)                                  \
    extern "C" __global__ void __launch_bounds__(32 * OF_QUERIES, BLOCKS_OF_QUERIES)                                        \
        attentionOfHalves##WIDTH(ConstFloats q, ConstFloats k, ConstFloats v, Floats y, Floats logSumExp, Span span) {      \
        attentionOfHalves<WIDTH, OF_QUERIES>(q, k, v, y, logSumExp, span);                                                  \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * OF_QUERIES, BLOCKS_OF_QUERIES)                                        \
        queryGradientOfHalves##WIDTH(ConstFloats q, ConstFloats k, ConstFloats v, Known known, Floats dq, Span span) {      \
        queryGradientOfHalves<WIDTH, OF_QUERIES>(q, k, v, known, dq, span);                                                 \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * OF_KEYS, BLOCKS_OF_KEYS)                                              \
        keyValueGradientOfHalves##WIDTH(ConstFloats q, ConstFloats k, ConstFloats v, Known known, Floats dk, Floats dv,     \
                                        Span span) {                                                                        \
        keyValueGradientOfHalves<WIDTH, OF_KEYS>(q, k, v, known, dk, dv, span);                                             \
    }

ATTENTION_OF_HALVES(64, 8, 4, 2, 3)
ATTENTION_OF_HALVES(128, 4, 4, 2, 2)
