// Matrix products c = op(a) op(b) or c += op(a) op(b) for when there is no cuBLAS, and of shapes that it is slow with. A factor may be transposed, F32 or
// bf16, of any size and stride. Sums are F32 and go over k in rising order (or the given order of rows), one element in
// one thread, so that how rows are split into calls does not matter to the bits of an F32 product.
#include "tensors.cuh"

// op(a) [rows, k], or op(b)^T [columns, k]: both factors are seen with k last.
struct Factor {
    const void* data;
    long long stride;
    int rows;        // m or n
    int transposed;  // whether k runs along the rows in memory
    int isBFloat16;
    int unused;
};

// Four elements that lie side by side in memory, zeros beyond `valid`.
__device__ __forceinline__ float4 loadFour(const Factor& factor, long long at, int valid) {
    if (factor.isBFloat16) {
        const unsigned short* p = static_cast<const unsigned short*>(factor.data) + at;
        if (valid >= 4 && reinterpret_cast<unsigned long long>(p) % 8 == 0) {
            ushort4 four = *reinterpret_cast<const ushort4*>(p);
            return make_float4(fromBFloat16(four.x), fromBFloat16(four.y), fromBFloat16(four.z), fromBFloat16(four.w));
        }
        return make_float4(valid > 0 ? fromBFloat16(p[0]) : 0, valid > 1 ? fromBFloat16(p[1]) : 0,
                           valid > 2 ? fromBFloat16(p[2]) : 0, valid > 3 ? fromBFloat16(p[3]) : 0);
    }
    const float* p = static_cast<const float*>(factor.data) + at;
    if (valid >= 4 && reinterpret_cast<unsigned long long>(p) % 16 == 0) {
        return *reinterpret_cast<const float4*>(p);
    }
    return make_float4(valid > 0 ? p[0] : 0, valid > 1 ? p[1] : 0, valid > 2 ? p[2] : 0, valid > 3 ? p[3] : 0);
}

// A tile of a factor on its way into shared memory: ROWS x DEPTH elements, four side by side at a time.
template <int ROWS, int DEPTH, int THREADS>
struct TileLoader {
    static constexpr int FOURS = ROWS * DEPTH / 4 / THREADS;
    float4 held[FOURS];

    static __device__ __forceinline__ int rowOf(const Factor& f, int four) {
        return f.transposed ? four % (ROWS / 4) * 4 : four / (DEPTH / 4);
    }
    static __device__ __forceinline__ int depthOf(const Factor& f, int four) {
        return f.transposed ? four / (ROWS / 4) : four % (DEPTH / 4) * 4;
    }

    // Asks global memory; what lies outside of the factor is zero. inMemory: the rows in memory of this tile's depths.
    __device__ __forceinline__ void load(const Factor& f, int firstRow, int firstDepth, int depth, const int* inMemory) {
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            int four = i * THREADS + threadIdx.x;
            int row = firstRow + rowOf(f, four), k = firstDepth + depthOf(f, four);
            held[i] = make_float4(0, 0, 0, 0);
            if (row < f.rows && k < depth) {
                held[i] = f.transposed ? loadFour(f, inMemory[k - firstDepth] * f.stride + row, f.rows - row)
                                       : loadFour(f, row * f.stride + k, depth - k);
            }
        }
    }

    // Calls put(row, k, value) for the elements that this thread holds.
    template <class Put>
    __device__ __forceinline__ void store(const Factor& f, Put put) const {
#pragma unroll
        for (int i = 0; i < FOURS; i++) {
            int four = i * THREADS + threadIdx.x;
            int row = rowOf(f, four), k = depthOf(f, four);
            int down = f.transposed ? 1 : 0, along = 1 - down;
            put(row, k, held[i].x);
            put(row + down, k + along, held[i].y);
            put(row + 2 * down, k + 2 * along, held[i].z);
            put(row + 3 * down, k + 3 * along, held[i].w);
        }
    }
};

// Finds the rows in memory of the depths of a tile; the next barrier makes them known.
template <int DEPTH>
__device__ __forceinline__ void findRows(int* inMemory, int firstDepth, int depth, const RowOrder& order) {
    int k = firstDepth + threadIdx.x;
    if (threadIdx.x < DEPTH && k < depth) {
        inMemory[threadIdx.x] = order.rowAt(k);
    }
}

// ---- F32: tiles of 64 x 64 x 16, each thread makes 4 x 4 elements ------------------------------------------------

constexpr int FLOAT_TILE = 64;
constexpr int FLOAT_DEPTH = 16;
constexpr int FLOAT_THREADS = 256;

extern "C" __global__ void __launch_bounds__(FLOAT_THREADS)
    productOfFloats(Factor a, Factor b, Floats c, int depth, int accumulate, RowOrder order) {
    constexpr int PITCH = FLOAT_TILE + 4;
    __shared__ __align__(16) float left[FLOAT_DEPTH][PITCH];
    __shared__ __align__(16) float right[FLOAT_DEPTH][PITCH];
    __shared__ int inMemory[FLOAT_DEPTH];
    int firstRow = blockIdx.y * FLOAT_TILE, firstColumn = blockIdx.x * FLOAT_TILE;
    int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            bool inside = firstRow + row + i < a.rows && firstColumn + column + j < b.rows;
            sum[i][j] = accumulate && inside ? c.at(firstRow + row + i, firstColumn + column + j) : 0;
        }
    }
    TileLoader<FLOAT_TILE, FLOAT_DEPTH, FLOAT_THREADS> ofA, ofB;
    findRows<FLOAT_DEPTH>(inMemory, 0, depth, order);
    __syncthreads();
    ofA.load(a, firstRow, 0, depth, inMemory);
    ofB.load(b, firstColumn, 0, depth, inMemory);
    for (int k0 = 0; k0 < depth; k0 += FLOAT_DEPTH) {
        // nobody needs the last tile or its rows any more
        __syncthreads();
        findRows<FLOAT_DEPTH>(inMemory, k0 + FLOAT_DEPTH, depth, order);
        ofA.store(a, [&](int r, int k, float value) { left[k][r] = value; });
        ofB.store(b, [&](int r, int k, float value) { right[k][r] = value; });
        __syncthreads();
        if (k0 + FLOAT_DEPTH < depth) {
            ofA.load(a, firstRow, k0 + FLOAT_DEPTH, depth, inMemory);
            ofB.load(b, firstColumn, k0 + FLOAT_DEPTH, depth, inMemory);
        }
#pragma unroll
        for (int k = 0; k < FLOAT_DEPTH; k++) {
            float4 x = *reinterpret_cast<const float4*>(&left[k][row]);
            float4 y = *reinterpret_cast<const float4*>(&right[k][column]);
            float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    sum[i][j] += xs[i] * ys[j];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (firstRow + row + i < a.rows && firstColumn + column + j < b.rows) {
                c.at(firstRow + row + i, firstColumn + column + j) = sum[i][j];
            }
        }
    }
}

// ---- bf16 on tensor cores: tiles of 128 x 128 x 32 by 2 x 4 warps of 64 x 32; F32 factors are rounded on the way ------

constexpr int HALF_TILE = 128;
constexpr int HALF_THREADS = 256;
constexpr int HALF_DEPTH = 32;
// 40 halves from row to row: the eight rows of a tile lie in different banks
constexpr int HALF_PITCH = HALF_DEPTH + 8;

extern "C" __global__ void __launch_bounds__(HALF_THREADS)
    productOfHalves(Factor a, Factor b, Floats c, int depth, int accumulate, RowOrder order) {
    __shared__ __align__(16) unsigned short left[HALF_TILE][HALF_PITCH];
    __shared__ __align__(16) unsigned short right[HALF_TILE][HALF_PITCH];
    __shared__ int inMemory[HALF_DEPTH];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int warpRow = warp / 4 * 64, warpColumn = warp % 4 * 32;
    int firstRow = blockIdx.y * HALF_TILE, firstColumn = blockIdx.x * HALF_TILE;

    // element e of fragment (i, j): rows of eight lanes' groups, columns in pairs
    auto rowOf = [&](int i, int e) { return firstRow + warpRow + i * 16 + lane / 4 + e / 2 * 8; };
    auto columnOf = [&](int j, int e) { return firstColumn + warpColumn + j * 8 + lane % 4 * 2 + e % 2; };
    float sum[4][4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                bool inside = rowOf(i, e) < a.rows && columnOf(j, e) < b.rows;
                sum[i][j][e] = accumulate && inside ? c.at(rowOf(i, e), columnOf(j, e)) : 0;
            }
        }
    }
    TileLoader<HALF_TILE, HALF_DEPTH, HALF_THREADS> ofA, ofB;
    findRows<HALF_DEPTH>(inMemory, 0, depth, order);
    __syncthreads();
    ofA.load(a, firstRow, 0, depth, inMemory);
    ofB.load(b, firstColumn, 0, depth, inMemory);
    for (int k0 = 0; k0 < depth; k0 += HALF_DEPTH) {
        // nobody needs the last tile or its rows any more
        __syncthreads();
        findRows<HALF_DEPTH>(inMemory, k0 + HALF_DEPTH, depth, order);
        ofA.store(a, [&](int r, int k, float value) { left[r][k] = toBFloat16(value); });
        ofB.store(b, [&](int r, int k, float value) { right[r][k] = toBFloat16(value); });
        __syncthreads();
        if (k0 + HALF_DEPTH < depth) {
            ofA.load(a, firstRow, k0 + HALF_DEPTH, depth, inMemory);
            ofB.load(b, firstColumn, k0 + HALF_DEPTH, depth, inMemory);
        }
#pragma unroll
        for (int k = 0; k < HALF_DEPTH; k += 16) {
            unsigned x[4][4], y[4][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                loadTiles(x[i], &left[warpRow + i * 16 + lane % 16][k + lane / 16 * 8]);
            }
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                unsigned both[4];
                loadTiles(both, &right[warpColumn + j * 8 + lane % 8 + lane / 16 * 8][k + lane / 8 % 2 * 8]);
                y[j][0] = both[0];
                y[j][1] = both[1];
                y[j + 1][0] = both[2];
                y[j + 1][1] = both[3];
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    multiplyTiles(sum[i][j], x[i], y[j]);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (rowOf(i, e) < a.rows && columnOf(j, e) < b.rows) {
                    c.at(rowOf(i, e), columnOf(j, e)) = sum[i][j][e];
                }
            }
        }
    }
}

// ---- bf16, few columns: c[i, j] = a[i] . b[j], a warp per row of a; k runs along the rows of both ---------------------

template <class T>
__device__ __forceinline__ void dotsTo(const ConstHalves& a, const ConstHalves& b, const View<T>& c, int rows, int columns,
                                       int depth, int accumulate) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) {
        return;
    }
    const unsigned short* x = a.row(row);
    int fours = isAligned(a) && isAligned(b) ? depth / 4 : 0;
    for (int j = 0; j < columns; j++) {
        const unsigned short* y = b.row(j);
        float sum = 0;
#pragma unroll 8
        for (int k = lane; k < fours; k += 32) {
            ushort4 u = reinterpret_cast<const ushort4*>(x)[k], v = reinterpret_cast<const ushort4*>(y)[k];
            sum += fromBFloat16(u.x) * fromBFloat16(v.x);
            sum += fromBFloat16(u.y) * fromBFloat16(v.y);
            sum += fromBFloat16(u.z) * fromBFloat16(v.z);
            sum += fromBFloat16(u.w) * fromBFloat16(v.w);
        }
        for (int k = 4 * fours + lane; k < depth; k += 32) {
            sum += fromBFloat16(x[k]) * fromBFloat16(y[k]);
        }
        sum = warpSum(sum);
        if (lane == 0) {
            store(&c.at(row, j), accumulate ? load(&c.at(row, j)) + sum : sum);
        }
    }
}

extern "C" __global__ void dotsOfHalves(ConstHalves a, ConstHalves b, Floats c, int rows, int columns, int depth,
                                        int accumulate) {
    dotsTo(a, b, c, rows, columns, depth, accumulate);
}

extern "C" __global__ void dotsOfHalvesRounded(ConstHalves a, ConstHalves b, Halves c, int rows, int columns, int depth,
                                               int accumulate) {
    dotsTo(a, b, c, rows, columns, depth, accumulate);
}

// ---- bf16, few rows: c[i, j] = column i of a . column j of b; a block takes 32 columns of b ----------------------------
//
// Thread (part, column) adds up rows part, part + 32, .. of both; then one warp adds up the 32 parts in their order.

extern "C" __global__ void columnDotsOfHalves(View<const unsigned short> a, View<const unsigned short> b, Floats c,
                                              int rows, int columns, int depth, int accumulate) {
    __shared__ float sums[32][33];
    int lane = threadIdx.x % 32, part = threadIdx.x / 32, column = blockIdx.x * 32 + lane;
    for (int i = 0; i < rows; i++) {
        float sum = 0;
        if (column < columns) {
#pragma unroll 8
            for (int k = part; k < depth; k += 32) {
                sum += fromBFloat16(a.row(k)[i]) * fromBFloat16(b.row(k)[column]);
            }
        }
        sums[part][lane] = sum;
        __syncthreads();
        if (part == 0 && column < columns) {
            float whole = sums[0][lane];
            for (int p = 1; p < 32; p++) {
                whole += sums[p][lane];
            }
            c.at(i, column) = accumulate ? c.at(i, column) + whole : whole;
        }
        __syncthreads();
    }
}
