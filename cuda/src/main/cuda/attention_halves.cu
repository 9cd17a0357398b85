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
// Rows of queries come in sixteens, each of one head: sixteen i holds the queries from i / group * 16 on of the group's head
// i % group. So every head that shares the keys meets a tile of them, and no row needs a division.
//
// Bits: a product's rows do not depend on each other, and a step of 16 keys or queries that a row does not see adds zeros.
// Keys go up, in tiles counted from the first one; queries go down in sixteens. Slices that begin at multiples of 16 tokens
// therefore give the bits of the whole, whatever tile a token falls into.
#include "attention.cuh"

// Sixteen queries of one head; fewer at the end of the queries, none beyond.
struct Sixteen {
    int query, head, count;

    __device__ __forceinline__ Sixteen(int i, const Span& span) {
        query = (span.group == 1 ? i : i / span.group) * 16;
        head = blockIdx.y * span.group + (span.group == 1 ? 0 : i % span.group);
        count = max(0, min(16, span.queries - query));
    }

    static __device__ __forceinline__ int all(const Span& span) { return (span.queries + 15) / 16 * span.group; }
};

template <class T>
struct FourOf {
    using Type = float4;
};

template <>
struct FourOf<unsigned short> {
    using Type = ushort4;
};

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
    // elements of two tiles that pass by together
    static constexpr int BOTH = 2 * PASSING * PITCH;

    // Whether the next tiles are under way while a block is busy with these: halves need no registers on their way.
    template <class T>
    static constexpr bool IS_AHEAD = sizeof(T) == 2 && WIDTH <= 64;

    // Rows of a head, which begins at a column, rounded unless they are halves, zeros from `rows` on. Ahead: they may be still
    // under way, until finishCopies().
    template <int ROWS, bool AHEAD, class T>
    static __device__ __forceinline__ void load(unsigned short* tile, const View<const T>& from, long long firstRow, int column,
                                                int rows, const Span& span) {
        if constexpr (AHEAD) {
            if ((from.stride | span.headWidth) % 8 == 0 && reinterpret_cast<unsigned long long>(from.data) % 16 == 0) {
                int first = threadIdx.x / (WIDTH / 8), j = threadIdx.x % (WIDTH / 8) * 8;
                const T* p = from.row(firstRow + first) + column + j;
                unsigned short* to = tile + first * PITCH + j;
                int there = j < span.headWidth ? rows - first : 0, stride = static_cast<int>(from.stride);
                constexpr int ROWS_AT_ONCE = THREADS / (WIDTH / 8);
#pragma unroll
                for (int row = 0; row < ROWS; row += ROWS_AT_ONCE) {
                    if (ROWS % ROWS_AT_ONCE == 0 || row + first < ROWS) {
                        beginCopy(to + row * PITCH, p + row * stride, row < there);
                    }
                }
                return;
            }
        }
        constexpr int ROWS_AT_ONCE = THREADS / (WIDTH / 4);
        constexpr int LOADS = ROWS / ROWS_AT_ONCE < 8 ? ROWS / ROWS_AT_ONCE : 8;
        int first = threadIdx.x / (WIDTH / 4), j = threadIdx.x % (WIDTH / 4) * 4;
        using Four = typename FourOf<T>::Type;
        const T* p = from.row(firstRow + first) + column + j;
        unsigned short* to = tile + first * PITCH + j;
        int valid = span.headWidth - j;
        int stride = static_cast<int>(from.stride);
        bool isAligned =
            (stride | span.headWidth) % 4 == 0 && reinterpret_cast<unsigned long long>(from.data) % sizeof(Four) == 0;
        if (isAligned) {
#pragma unroll 1
            for (int row = first; row < ROWS; row += LOADS * ROWS_AT_ONCE) {
                Four held[LOADS];
#pragma unroll
                for (int i = 0; i < LOADS; i++) {
                    held[i] = row + i * ROWS_AT_ONCE < rows && valid > 0
                                  ? *reinterpret_cast<const Four*>(p + i * ROWS_AT_ONCE * stride)
                                  : Four{};
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
                put(to, there, p);
                p += ROWS_AT_ONCE * stride;
                to += ROWS_AT_ONCE * PITCH;
            }
        }
    }

    template <int ROWS, bool AHEAD = false, class T>
    static __device__ __forceinline__ void loadKeys(unsigned short* tile, const View<const T>& from, int firstKey, int keys,
                                                    const Span& span) {
        load<ROWS, AHEAD>(tile, from, span.inKeys(firstKey), span.columnOfKeys(), keys, span);
    }

    // Calls work(firstKey, keys, values) for the tiles of keys and values from `begin` up to `end`. Ahead, there are two pairs
    // of tiles, and the first barrier of a turn also tells that everybody is done with the pair that is loaded next.
    template <class T, class Work>
    static __device__ __forceinline__ void passKeys(unsigned short* tiles, const View<const T>& k, const View<const T>& v,
                                                    int begin, int end, const Span& span, Work work) {
        constexpr bool AHEAD = IS_AHEAD<T>;
        auto loadBoth = [&](int firstKey, unsigned short* to) {
            int keysHere = min(PASSING, span.keys - firstKey);
            loadKeys<PASSING, AHEAD>(to, k, firstKey, keysHere, span);
            loadKeys<PASSING, AHEAD>(to + PASSING * PITCH, v, firstKey, keysHere, span);
        };
        auto at = [&](int firstKey) { return tiles + (AHEAD ? firstKey / PASSING % 2 * BOTH : 0); };
        if (AHEAD && begin < end) {
            loadBoth(begin, at(begin));
        }
#pragma unroll 1
        for (int firstKey = begin; firstKey < end; firstKey += PASSING) {
            if constexpr (AHEAD) {
                finishCopies();
                __syncthreads();
                if (firstKey + PASSING < end) {
                    loadBoth(firstKey + PASSING, at(firstKey + PASSING));
                }
            } else {
                __syncthreads();
                loadBoth(firstKey, tiles);
                __syncthreads();
            }
            work(firstKey, at(firstKey), at(firstKey) + PASSING * PITCH);
        }
    }

    // Rows of queries from a sixteen on; rowOf(query) is where a query's row lies.
    template <int ROWS, bool AHEAD = false, class T, class RowOf>
    static __device__ __forceinline__ void loadQueries(unsigned short* tile, const View<const T>& from, int first,
                                                       const Span& span, RowOf rowOf) {
        if (span.group == 1) {
            load<ROWS, AHEAD>(tile, from, rowOf(first * 16), blockIdx.y * span.headWidth, span.queries - first * 16, span);
            return;
        }
#pragma unroll 1
        for (int i = 0; i < ROWS / 16; i++) {
            Sixteen rows(first + i, span);
            load<16, AHEAD>(tile + i * 16 * PITCH, from, rowOf(rows.query), rows.head * span.headWidth, rows.count, span);
        }
    }

    static __device__ __forceinline__ void put(unsigned short* to, const float4& four) {
        *reinterpret_cast<uint2*>(to) = make_uint2(pairOfHalves(four.x, four.y), pairOfHalves(four.z, four.w));
    }

    static __device__ __forceinline__ void put(unsigned short* to, const ushort4& four) {
        *reinterpret_cast<ushort4*>(to) = four;
    }

    // Up to four elements of memory that is not aligned, zeros behind them.
    static __device__ __forceinline__ void put(unsigned short* to, int there, const float* p) {
        put(to, make_float4(there > 0 ? p[0] : 0, there > 1 ? p[1] : 0, there > 2 ? p[2] : 0, there > 3 ? p[3] : 0));
    }
    static __device__ __forceinline__ void put(unsigned short* to, int there, const unsigned short* p) {
        put(to, make_ushort4(there > 0 ? p[0] : 0, there > 1 ? p[1] : 0, there > 2 ? p[2] : 0, there > 3 ? p[3] : 0));
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

    // Calls work(n, e, row, j) for the elements of sum[16, WIDTH] that this thread holds; rows count from the warp's.
    template <class Work>
    static __device__ __forceinline__ void eachHeld(int rows, const Span& span, Work work) {
        int lane = threadIdx.x % 32;
#pragma unroll
        for (int n = 0; n < COLUMNS; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int row = lane / 4 + e / 2 * 8, j = n * 8 + lane % 4 * 2 + e % 2;
                if (row < rows && j < span.headWidth) {
                    work(n, e, row, j);
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

template <int WIDTH, int WARPS, class T>
__device__ __forceinline__ void attentionOfHalves(const View<const T>& q, const View<const T>& k, const View<const T>& v,
                                                  const Floats& y, const Floats& logSumExp, const Span& span) {
    using Tiles = HalfTiles<WIDTH, WARPS>;
    constexpr int STEPS = Tiles::PASSING / 16;
    unsigned short* queries = dynamicShared<unsigned short>();
    unsigned short* tiles = queries + Tiles::OWN * Tiles::PITCH;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // the last queries see most keys: their blocks start first
    int first = (gridDim.x - 1 - blockIdx.x) * WARPS;
    Sixteen own(first + warp, span);
    int column = own.head * span.headWidth;

    constexpr bool AHEAD = Tiles::template IS_AHEAD<T>;
    Tiles::template loadQueries<Tiles::OWN, AHEAD>(queries, q, first, span, [&](int query) { return span.inQueries(query); });
    // of the rows lane / 4 and 8 below it; of sums every lane has a part
    float largest[2], sum[2], out[Tiles::COLUMNS][4] = {};
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = lane / 4 + r * 8;
        bool goesOn = span.goesOn && row < own.count;
        largest[r] = goesOn ? logSumExp.at(span.inUnit(own.query + row), own.head) * LOG2_E : -INFINITY;
        sum[r] = goesOn && lane % 4 == 0 ? 1 : 0;
    }
    if (span.goesOn) {
        Tiles::eachHeld(own.count, span, [&](int n, int e, int row, int j) {
            out[n][e] = y.at(span.inUnit(own.query + row), column + j);
        });
    }
    float scale = span.scale * LOG2_E;
    int last = min(first + WARPS, Sixteen::all(span)) - 1;
    int seen = span.keysSeenBy(min(span.queries, Sixteen(last, span).query + 16) - 1);
    int begin = span.firstSeenBy(Sixteen(first, span).query) / Tiles::PASSING * Tiles::PASSING;
    Tiles::passKeys(tiles, k, v, begin, seen, span, [&](int firstKey, const unsigned short* keys, const unsigned short* values) {
        if (own.count == 0 || firstKey >= span.keysSeenBy(own.query + 15) ||
            firstKey + Tiles::PASSING <= span.firstSeenBy(own.query)) {
            return;
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
        if (firstKey + Tiles::PASSING > span.keysSeenBy(own.query) || firstKey < span.firstSeenBy(own.query + 15)) {
            int at = onlyHere(lane);
#pragma unroll
            for (int i = 0; i < STEPS * 8; i++) {
                int key = firstKey + i / 4 * 8 + at % 4 * 2 + i % 2, query = own.query + at / 4 + i / 2 % 2 * 8;
                float& score = s[i / 8][i / 4 % 2][i % 4];
                score = key < span.keysSeenBy(query) && key >= span.firstSeenBy(query) ? score : -INFINITY;
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float most = -INFINITY, before = largest[r];
#pragma unroll
            for (int i = 0; i < STEPS * 4; i++) {
                most = fmaxf(most, s[i / 4][i / 2 % 2][r * 2 + i % 2]);
            }
            largest[r] = fmaxf(largest[r], rowMax(most) * scale);
            // -infinity: no key was seen yet, and everything so far is to be 0
            float newLargest = largest[r] == -INFINITY ? 0 : largest[r];
            float kept = powerOfTwo(before - newLargest);
            sum[r] *= kept;
#pragma unroll
            for (int i = 0; i < STEPS * 4; i++) {
                float& score = s[i / 4][i / 2 % 2][r * 2 + i % 2];
                score = powerOfTwo(fmaf(score, scale, -newLargest));
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
    });
    sum[0] = rowSum(sum[0]);
    sum[1] = rowSum(sum[1]);
    Tiles::eachHeld(own.count, span, [&](int n, int e, int row, int j) {
        y.at(span.inUnit(own.query + row), column + j) = out[n][e] / sum[e / 2];
    });
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int row = lane / 4 + r * 8;
        // what a query has that sees no key is not to be rounded
        if (lane % 4 == 0 && row < own.count && span.firstSeenBy(own.query + row) < span.keys) {
            logSumExp.at(span.inUnit(own.query + row), own.head) = largest[r] * LN_2 + logf(sum[r]);
        }
    }
}

// dq of a tile of queries.
template <int WIDTH, int WARPS, class T, class D>
__device__ __forceinline__ void queryGradientOfHalves(const View<const T>& q, const View<const T>& k, const View<const T>& v,
                                                      const KnownOf<T>& known, const View<D>& dq, const Span& span) {
    using Tiles = HalfTiles<WIDTH, WARPS>;
    static_assert(Tiles::OWN <= 2 * Tiles::PASSING, "queries lie where keys and values will");
    unsigned short* tiles = dynamicShared<unsigned short>();
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first = (gridDim.x - 1 - blockIdx.x) * WARPS;
    Sixteen own(first + warp, span);
    int column = own.head * span.headWidth;

    unsigned queries[Tiles::DEPTHS][4], gradients[Tiles::DEPTHS][4];
    Tiles::template loadQueries<Tiles::OWN>(tiles, q, first, span, [&](int query) { return span.inQueries(query); });
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
        Tiles::left(queries[depth], tiles, warp * 16, depth);
    }
    __syncthreads();
    Tiles::template loadQueries<Tiles::OWN>(tiles, known.dy, first, span, [&](int query) { return span.inUnit(query); });
    __syncthreads();
#pragma unroll
    for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
        Tiles::left(gradients[depth], tiles, warp * 16, depth);
    }
    if constexpr (Tiles::template IS_AHEAD<T>) {
        __syncthreads();
    }
    float total[2], delta[2], sum[Tiles::COLUMNS][4] = {};
#pragma unroll
    for (int r = 0; r < 2; r++) {
        bool isThere = lane / 4 + r * 8 < own.count;
        long long row = span.inUnit(own.query + lane / 4 + r * 8);
        total[r] = isThere ? known.logSumExp.at(row, own.head) * LOG2_E : 0;
        delta[r] = isThere ? known.delta[row * span.heads + own.head] : 0;
    }
    if (span.goesOn) {
        Tiles::eachHeld(own.count, span, [&](int n, int e, int row, int j) {
            sum[n][e] = load(&dq.at(span.inQueries(own.query + row), column + j));
        });
    }
    float scale = span.scale * LOG2_E;
    int last = min(first + WARPS, Sixteen::all(span)) - 1;
    int seen = span.keysSeenBy(min(span.queries, Sixteen(last, span).query + 16) - 1);
    int begin = span.firstSeenBy(Sixteen(first, span).query) / Tiles::PASSING * Tiles::PASSING;
    // in a warp: keys that some query sees, and that all see
    int seenByWarp = own.count == 0 ? 0 : min(seen, span.keysSeenBy(own.query + 15)), seenByAll = span.keysSeenBy(own.query);
    int firstOfWarp = span.firstSeenBy(own.query), firstOfAll = span.firstSeenBy(own.query + 15);
    Tiles::passKeys(tiles, k, v, begin, seen, span, [&](int firstKey, const unsigned short* keys, const unsigned short* values) {
#pragma unroll 1
        for (int step = 0; step < Tiles::PASSING && firstKey + step < seenByWarp; step += 16) {
            if (firstKey + step + 16 <= firstOfWarp) {
                continue;
            }
            float s[2][4] = {}, ds[2][4] = {};
#pragma unroll
            for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
                Tiles::multiplyRows(s, queries[depth], keys, step, depth);
                Tiles::multiplyRows(ds, gradients[depth], values, step, depth);
            }
            if (firstKey + step + 16 > seenByAll || firstKey + step < firstOfAll) {
                int at = onlyHere(lane);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    int key = firstKey + step + i / 4 * 8 + at % 4 * 2 + i % 2, query = own.query + at / 4 + i / 2 % 2 * 8;
                    float& score = s[i / 4][i % 4];
                    score = key < span.keysSeenBy(query) && key >= span.firstSeenBy(query) ? score : -INFINITY;
                }
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int r = i / 2 % 2;
                float p = powerOfTwo(fmaf(s[i / 4][i % 4], scale, -total[r]));
                ds[i / 4][i % 4] = span.scale * p * (ds[i / 4][i % 4] - delta[r]);
            }
            unsigned x[4];
            repack(x, ds);
            Tiles::addRows(sum, x, keys, step);
        }
    });
    Tiles::eachHeld(own.count, span, [&](int n, int e, int row, int j) {
        store(&dq.at(span.inQueries(own.query + row), column + j), sum[n][e]);
    });
}

// dk and dv of a tile of keys, added to what is there if it goes on. Scores lie transposed: rows are keys, columns queries.
template <int WIDTH, int WARPS, class T, class D>
__device__ __forceinline__ void keyValueGradientOfHalves(const View<const T>& q, const View<const T>& k, const View<const T>& v,
                                                         const KnownOf<T>& known, const View<D>& dk, const View<D>& dv,
                                                         const Span& span) {
    using Tiles = HalfTiles<WIDTH, WARPS>;
    constexpr bool AHEAD = Tiles::template IS_AHEAD<T>;
    static_assert(!AHEAD || Tiles::OWN <= Tiles::PASSING, "keys and values lie where queries and gradients will");
    unsigned short* keys = dynamicShared<unsigned short>();
    unsigned short* values = keys + Tiles::OWN * Tiles::PITCH;
    // those that pass by, ahead two of each
    unsigned short* tiles = AHEAD ? keys : values + Tiles::OWN * Tiles::PITCH;
    float* numbers = reinterpret_cast<float*>(tiles + (AHEAD ? 2 : 1) * Tiles::BOTH);
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int firstKey = blockIdx.x * Tiles::OWN, keysHere = min(Tiles::OWN, span.keys - firstKey);
    int firstOfWarp = firstKey + warp * 16, column = span.columnOfKeys();

    Tiles::template loadKeys<Tiles::OWN>(keys, k, firstKey, keysHere, span);
    Tiles::template loadKeys<Tiles::OWN>(values, v, firstKey, keysHere, span);
    unsigned heldKeys[AHEAD ? Tiles::DEPTHS : 1][4], heldValues[AHEAD ? Tiles::DEPTHS : 1][4];
    if constexpr (AHEAD) {
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
            Tiles::left(heldKeys[depth], keys, warp * 16, depth);
            Tiles::left(heldValues[depth], values, warp * 16, depth);
        }
        __syncthreads();
    }
    float sumK[Tiles::COLUMNS][4] = {}, sumV[Tiles::COLUMNS][4] = {};
    if (span.goesOn) {
        Tiles::eachHeld(keysHere - warp * 16, span, [&](int n, int e, int row, int j) {
            sumK[n][e] = load(&dk.at(span.inKeys(firstOfWarp + row), column + j));
            sumV[n][e] = load(&dv.at(span.inKeys(firstOfWarp + row), column + j));
        });
    }
    float scale = span.scale * LOG2_E;
    constexpr int SIXTEENS = Tiles::PASSING / 16;
    int sixteens = Sixteen::all(span);
    // going down, first come queries that see only later keys, if any; and those that see only earlier ones are the last
    int tile = (sixteens - 1) / SIXTEENS * SIXTEENS;
    while (tile >= 0 && span.firstSeenBy(Sixteen(tile, span).query) >= firstKey + keysHere) {
        tile -= SIXTEENS;
    }
    auto sees = [&](int at) {
        int last = min(at + SIXTEENS, sixteens) - 1;
        return at >= 0 && span.keysSeenBy(min(span.queries, Sixteen(last, span).query + 16) - 1) > firstKey;
    };
    float total = 0, delta = 0;
    auto load = [&](int at, unsigned short* to) {
        Tiles::template loadQueries<Tiles::PASSING, AHEAD>(to, q, at, span, [&](int query) { return span.inQueries(query); });
        Tiles::template loadQueries<Tiles::PASSING, AHEAD>(to + Tiles::PASSING * Tiles::PITCH, known.dy, at, span,
                                                           [&](int query) { return span.inUnit(query); });
        if (threadIdx.x < Tiles::PASSING) {
            // queries that are not there have zeros for q and dy, and add nothing
            Sixteen rows(at + threadIdx.x / 16, span);
            int i = threadIdx.x % 16;
            long long row = span.inUnit(rows.query + i);
            total = i < rows.count ? known.logSumExp.at(row, rows.head) : 0;
            delta = i < rows.count ? known.delta[row * span.heads + rows.head] : 0;
        }
    };
    if (AHEAD && sees(tile)) {
        load(tile, tiles);
    }
    for (int pair = 0; sees(tile); tile -= SIXTEENS, pair ^= AHEAD ? 1 : 0) {
        int here = min(SIXTEENS, sixteens - tile);
        const unsigned short* queries = tiles + pair * Tiles::BOTH;
        const unsigned short* gradients = queries + Tiles::PASSING * Tiles::PITCH;
        float* totals = numbers + pair * 2 * Tiles::PASSING;
        float* deltas = totals + Tiles::PASSING;
        if constexpr (AHEAD) {
            finishCopies();
        } else {
            __syncthreads();
            load(tile, tiles);
        }
        if (threadIdx.x < Tiles::PASSING) {
            totals[threadIdx.x] = total * LOG2_E;
            deltas[threadIdx.x] = delta;
        }
        __syncthreads();
        if (AHEAD && sees(tile - SIXTEENS)) { // everybody is done with the other pair
            load(tile - SIXTEENS, tiles + (1 - pair) * Tiles::BOTH);
        }
        if (warp * 16 >= keysHere) {
            continue;
        }
#pragma unroll 1
        for (int first = (here - 1) * 16; first >= 0; first -= 16) {
            int firstQuery = Sixteen(tile + first / 16, span).query;
            if (span.seenByFirst + firstQuery + 15 <= firstOfWarp) {
                break;
            }
            if (span.firstSeenBy(firstQuery) >= firstOfWarp + 16) {
                continue;
            }
            float s[2][4] = {}, ds[2][4] = {};
#pragma unroll
            for (int depth = 0; depth < Tiles::DEPTHS; depth++) {
                if constexpr (AHEAD) {
                    Tiles::multiplyRows(s, heldKeys[depth], queries, first, depth);
                    Tiles::multiplyRows(ds, heldValues[depth], gradients, first, depth);
                } else {
                    unsigned x[4];
                    Tiles::left(x, keys, warp * 16, depth);
                    Tiles::multiplyRows(s, x, queries, first, depth);
                    Tiles::left(x, values, warp * 16, depth);
                    Tiles::multiplyRows(ds, x, gradients, first, depth);
                }
            }
            if (firstOfWarp + 15 >= span.seenByFirst + firstQuery || firstOfWarp < span.firstSeenBy(firstQuery + 15)) {
                int at = onlyHere(lane);
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    int key = firstOfWarp + at / 4 + i / 2 % 2 * 8, query = firstQuery + i / 4 * 8 + at % 4 * 2 + i % 2;
                    float& score = s[i / 4][i % 4];
                    score = key < span.seenByFirst + query && key >= span.firstSeenBy(query) ? score : -INFINITY;
                }
            }
#pragma unroll
            for (int n = 0; n < 2; n++) {
                int row = first + n * 8 + lane % 4 * 2;
                float2 total = *reinterpret_cast<const float2*>(totals + row);
                float2 delta = *reinterpret_cast<const float2*>(deltas + row);
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    s[n][e] = powerOfTwo(fmaf(s[n][e], scale, -(e % 2 ? total.y : total.x)));
                    ds[n][e] = span.scale * s[n][e] * (ds[n][e] - (e % 2 ? delta.y : delta.x));
                }
            }
            unsigned x[4];
            repack(x, s);
            Tiles::addRows(sumV, x, gradients, first);
            repack(x, ds);
            Tiles::addRows(sumK, x, queries, first);
        }
    }
    Tiles::eachHeld(keysHere - warp * 16, span, [&](int n, int e, int row, int j) {
        store(&dk.at(span.inKeys(firstOfWarp + row), column + j), sumK[n][e]);
        store(&dv.at(span.inKeys(firstOfWarp + row), column + j), sumV[n][e]);
    });
}

// One of each for heads of up to 64 and 128 columns, for queries, keys and values in F32 and rounded: as many warps as share a
// tile without spilling, which halves what is loaded, and blocks per multiprocessor.
#define ATTENTION_OF_HALVES(NAME, T, WIDTH, OF_QUERIES, OF_KEYS, BLOCKS_OF_QUERIES, BLOCKS_OF_KEYS)                         \
    extern "C" __global__ void __launch_bounds__(32 * OF_QUERIES, BLOCKS_OF_QUERIES)                                        \
        attentionOf##NAME##WIDTH(View<const T> q, View<const T> k, View<const T> v, Floats y, Floats logSumExp, Span span) { \
        attentionOfHalves<WIDTH, OF_QUERIES>(q, k, v, y, logSumExp, span);                                                  \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * OF_QUERIES, BLOCKS_OF_QUERIES)                                        \
        queryGradientOf##NAME##WIDTH(View<const T> q, View<const T> k, View<const T> v, KnownOf<T> known, Floats dq, Span span) { \
        queryGradientOfHalves<WIDTH, OF_QUERIES>(q, k, v, known, dq, span);                                                 \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * OF_KEYS, BLOCKS_OF_KEYS)                                              \
        keyValueGradientOf##NAME##WIDTH(View<const T> q, View<const T> k, View<const T> v, KnownOf<T> known, Floats dk,          \
                                        Floats dv, Span span) {                                                             \
        keyValueGradientOfHalves<WIDTH, OF_KEYS>(q, k, v, known, dk, dv, span);                                             \
    }

ATTENTION_OF_HALVES(Halves, float, 64, 8, 4, 2, 3)
ATTENTION_OF_HALVES(Halves, float, 128, 4, 4, 2, 2)
ATTENTION_OF_HALVES(KeptHalves, unsigned short, 64, 8, 4, 2, 3)
ATTENTION_OF_HALVES(KeptHalves, unsigned short, 128, 4, 4, 2, 2)

// Gradients that are rounded, of whole sequences.
#define ROUNDED_GRADIENTS_OF_HALVES(WIDTH, OF_QUERIES, OF_KEYS, BLOCKS_OF_QUERIES, BLOCKS_OF_KEYS)                          \
    extern "C" __global__ void __launch_bounds__(32 * OF_QUERIES, BLOCKS_OF_QUERIES)                                        \
        roundedQueryGradientOfKeptHalves##WIDTH(ConstHalves q, ConstHalves k, ConstHalves v, KnownOf<unsigned short> known, \
                                                Halves dq, Span span) {                                                     \
        queryGradientOfHalves<WIDTH, OF_QUERIES>(q, k, v, known, dq, span);                                                 \
    }                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(32 * OF_KEYS, BLOCKS_OF_KEYS)                                              \
        roundedKeyValueGradientOfKeptHalves##WIDTH(ConstHalves q, ConstHalves k, ConstHalves v,                             \
                                                   KnownOf<unsigned short> known, Halves dk, Halves dv, Span span) {        \
        keyValueGradientOfHalves<WIDTH, OF_KEYS>(q, k, v, known, dk, dv, span);                                             \
    }

ROUNDED_GRADIENTS_OF_HALVES(64, 8, 4, 2, 3)
ROUNDED_GRADIENTS_OF_HALVES(128, 4, 4, 2, 2)
