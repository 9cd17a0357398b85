// Element by element: biases, residuals, GELU and gates, rotary positions, copies, AdamW.
#include "tensors.cuh"

template <class T>
struct Pair {
    T first, second;
};

template <class Result>
__device__ __forceinline__ void addBiasTo(const Result& result, const Floats& y, const float* __restrict__ bias, int rows,
                                          int columns) {
    eachFour(
        rows, columns, isAligned(y) && isAligned(bias) && isAligned(result),
        [&](int i, int j, auto sum) {
            auto b = sum.at(bias + j);
            sum = sum.at(&y.at(i, j));
#pragma unroll
            for (int n = 0; n < sum.COUNT; n++) {
                sum.of[n] += b.of[n];
            }
            return sum;
        },
        [&](int i, int j, auto sum) { sum.storeAt(&result.at(i, j)); });
}

// y += bias
extern "C" __global__ void addBias(Floats y, const float* __restrict__ bias, int rows, int columns) {
    addBiasTo(y, y, bias, rows, columns);
}

// rounded = y + bias
extern "C" __global__ void addBiasRounded(Floats y, const float* __restrict__ bias, Halves rounded, int rows, int columns) {
    addBiasTo(rounded, y, bias, rows, columns);
}

// y = (y + bias) + residual
extern "C" __global__ void addBiasAndResidual(Floats y, const float* __restrict__ bias, ConstFloats residual, int rows,
                                              int columns) {
    eachFour(
        rows, columns, isAligned(y) && isAligned(bias) && isAligned(residual),
        [&](int i, int j, auto sum) {
            auto b = sum.at(bias + j), r = sum.at(&residual.at(i, j));
            sum = sum.at(&y.at(i, j));
#pragma unroll
            for (int n = 0; n < sum.COUNT; n++) {
                sum.of[n] = (sum.of[n] + b.of[n]) + r.of[n];
            }
            return sum;
        },
        [&](int i, int j, auto sum) { sum.storeAt(&y.at(i, j)); });
}

constexpr float SQRT_2_OVER_PI = 0.7978845608028654f;
constexpr float CUBIC = 0.044715f;

__device__ __forceinline__ float tanhOfGelu(float x) { return tanhf(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)); }

struct TanhGelu {
    static __device__ __forceinline__ float of(float x) { return 0.5f * x * (1 + tanhOfGelu(x)); }

    static __device__ __forceinline__ float gradient(float x) {
        float t = tanhOfGelu(x);
        float inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
        return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
    }
};

constexpr float INVERSE_ROOT_2 = 0.7071067811865476f;
constexpr float INVERSE_ROOT_2_PI = 0.3989422804014327f;

// The share of the standard normal distribution below x.
__device__ __forceinline__ float normalBelow(float x) { return 0.5f * erfcf(-x * INVERSE_ROOT_2); }

struct ExactGelu {
    static __device__ __forceinline__ float of(float x) { return x * normalBelow(x); }

    static __device__ __forceinline__ float gradient(float x) {
        float density = INVERSE_ROOT_2_PI * expf(-0.5f * x * x);
        return normalBelow(x) + x * density;
    }
};

template <class Gelu>
__device__ __forceinline__ void biasGeluOf(const Floats& pre, const float* __restrict__ bias, const Floats& y, int rows,
                                           int columns) {
    eachFour(rows, columns, isAligned(pre) && isAligned(bias) && isAligned(y), [&](int i, int j, auto x) {
        auto b = x.at(bias + j), gelu = b;
        x = x.at(&pre.at(i, j));
#pragma unroll
        for (int n = 0; n < x.COUNT; n++) {
            x.of[n] += b.of[n];
            gelu.of[n] = Gelu::of(x.of[n]);
        }
        x.storeAt(&pre.at(i, j));
        gelu.storeAt(&y.at(i, j));
    });
}

// pre += bias; y = gelu(pre), tanh form. The backward needs pre.
extern "C" __global__ void biasGelu(Floats pre, const float* __restrict__ bias, Floats y, int rows, int columns) {
    biasGeluOf<TanhGelu>(pre, bias, y, rows, columns);
}

// Same in the exact form.
extern "C" __global__ void biasExactGelu(Floats pre, const float* __restrict__ bias, Floats y, int rows, int columns) {
    biasGeluOf<ExactGelu>(pre, bias, y, rows, columns);
}

template <class Gelu>
__device__ __forceinline__ void geluBackwardOf(const ConstFloats& pre, const Floats& dy, int rows, int columns) {
    eachFour(rows, columns, isAligned(pre) && isAligned(dy), [&](int i, int j, auto gradient) {
        auto x = gradient.at(&pre.at(i, j));
        gradient = gradient.at(&dy.at(i, j));
#pragma unroll
        for (int n = 0; n < x.COUNT; n++) {
            gradient.of[n] *= Gelu::gradient(x.of[n]);
        }
        gradient.storeAt(&dy.at(i, j));
    });
}

// dy *= gelu'(pre)
extern "C" __global__ void geluBackward(ConstFloats pre, Floats dy, int rows, int columns) {
    geluBackwardOf<TanhGelu>(pre, dy, rows, columns);
}

// Same in the exact form.
extern "C" __global__ void exactGeluBackward(ConstFloats pre, Floats dy, int rows, int columns) {
    geluBackwardOf<ExactGelu>(pre, dy, rows, columns);
}

template <class Gelu>
__device__ __forceinline__ void geluRoundedOf(const ConstFloats& pre, const float* __restrict__ bias, const Halves& y, int rows,
                                              int columns) {
    eachFour(
        rows, columns, isAligned(pre) && isAligned(bias) && isAligned(y),
        [&](int i, int j, auto x) {
            auto b = x.at(bias + j);
            x = x.at(&pre.at(i, j));
#pragma unroll
            for (int n = 0; n < x.COUNT; n++) {
                x.of[n] += b.of[n];
            }
            return x;
        },
        [&](int i, int j, auto x) {
#pragma unroll
            for (int n = 0; n < x.COUNT; n++) {
                x.of[n] = Gelu::of(x.of[n]);
            }
            x.storeAt(&y.at(i, j));
        });
}

// y = gelu(pre + bias), tanh form, rounded. pre stays as it is.
extern "C" __global__ void geluRounded(ConstFloats pre, const float* __restrict__ bias, Halves y, int rows, int columns) {
    geluRoundedOf<TanhGelu>(pre, bias, y, rows, columns);
}

// Same in the exact form.
extern "C" __global__ void exactGeluRounded(ConstFloats pre, const float* __restrict__ bias, Halves y, int rows, int columns) {
    geluRoundedOf<ExactGelu>(pre, bias, y, rows, columns);
}

template <class Gelu>
__device__ __forceinline__ void geluBackwardRoundedOf(const ConstFloats& pre, const float* __restrict__ bias,
                                                      const ConstFloats& dy, const Halves& dPre, float* partial, int columns,
                                                      const RowOrder& order) {
    bool aligned = isAligned(pre) && isAligned(bias) && isAligned(dy) && isAligned(dPre);
    sumBlocks<4>(
        partial, columns, aligned, order,
        [&](int i, int j, auto some) {
            auto x = some.at(&pre.at(i, j)), b = some.at(bias + j);
#pragma unroll
            for (int n = 0; n < x.COUNT; n++) {
                x.of[n] += b.of[n];
            }
            return Pair<decltype(some)>{x, some.at(&dy.at(i, j))};
        },
        [&](int i, int j, auto loaded) {
            auto x = loaded.first, gradient = loaded.second;
#pragma unroll
            for (int n = 0; n < x.COUNT; n++) {
                gradient.of[n] *= Gelu::gradient(x.of[n]);
            }
            gradient.storeAt(&dPre.at(i, j));
            return gradient;
        });
}

// dPre = dy * gelu'(pre + bias), rounded; partial[i] = the sum of its rows in the i-th block, not rounded, unless null.
extern "C" __global__ void geluBackwardRounded(ConstFloats pre, const float* __restrict__ bias, ConstFloats dy, Halves dPre,
                                               float* partial, int columns, RowOrder order) {
    geluBackwardRoundedOf<TanhGelu>(pre, bias, dy, dPre, partial, columns, order);
}

// Same in the exact form.
extern "C" __global__ void exactGeluBackwardRounded(ConstFloats pre, const float* __restrict__ bias, ConstFloats dy, Halves dPre,
                                                    float* partial, int columns, RowOrder order) {
    geluBackwardRoundedOf<ExactGelu>(pre, bias, dy, dPre, partial, columns, order);
}

template <class Result>
__device__ __forceinline__ void swiGluOf(const ConstFloats& gated, const Result& z, int rows, int columns) {
    eachFour(rows, columns, isAligned(gated) && isAligned(z) && columns % 4 == 0, [&](int i, int j, auto result) {
        auto a = result.at(&gated.at(i, j)), b = result.at(&gated.at(i, columns + j));
        result = a;
#pragma unroll
        for (int n = 0; n < a.COUNT; n++) {
            result.of[n] = a.of[n] / (1 + expf(-a.of[n])) * b.of[n];
        }
        result.storeAt(&z.at(i, j));
    });
}

// z = silu(a) * b; gated is a, beside it b, each of so many columns.
extern "C" __global__ void swiGlu(ConstFloats gated, Floats z, int rows, int columns) { swiGluOf(gated, z, rows, columns); }

extern "C" __global__ void swiGluRounded(ConstFloats gated, Halves z, int rows, int columns) {
    swiGluOf(gated, z, rows, columns);
}

template <class Result>
__device__ __forceinline__ void swiGluBackwardOf(const ConstFloats& gated, const ConstFloats& dz, const Result& dGated, int rows,
                                                 int columns) {
    bool aligned = isAligned(gated) && isAligned(dz) && isAligned(dGated) && columns % 4 == 0;
    eachFour(rows, columns, aligned, [&](int i, int j, auto gradient) {
        auto a = gradient.at(&gated.at(i, j)), b = gradient.at(&gated.at(i, columns + j));
        gradient = gradient.at(&dz.at(i, j));
#pragma unroll
        for (int n = 0; n < a.COUNT; n++) {
            float s = 1 / (1 + expf(-a.of[n])), value = a.of[n] * s;
            a.of[n] = gradient.of[n] * b.of[n] * (s + value * (1 - s));
            b.of[n] = gradient.of[n] * value;
        }
        a.storeAt(&dGated.at(i, j));
        b.storeAt(&dGated.at(i, columns + j));
    });
}

// da = dz b s (1 + a (1 - s)), db = dz a s with s = 1 / (1 + exp(-a)); dGated may be gated.
extern "C" __global__ void swiGluBackward(ConstFloats gated, ConstFloats dz, Floats dGated, int rows, int columns) {
    swiGluBackwardOf(gated, dz, dGated, rows, columns);
}

extern "C" __global__ void swiGluBackwardRounded(ConstFloats gated, ConstFloats dz, Halves dGated, int rows, int columns) {
    swiGluBackwardOf(gated, dz, dGated, rows, columns);
}

// Java's DropoutMask: a counter per column from a row's key and the site's, mixed by SplitMix64's finisher.
__device__ __forceinline__ bool isKept(unsigned long long key, int column, unsigned threshold) {
    unsigned long long z = key + (column + 1ULL) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return static_cast<unsigned>(z >> 32) >= threshold;
}

// x = kept ? x * scale : 0
template <class Some>
__device__ __forceinline__ void dropped(Some& x, const unsigned* key, unsigned long long site, int column, unsigned threshold,
                                        float scale) {
    unsigned long long mixed = (key[0] | static_cast<unsigned long long>(key[1]) << 32) ^ site;
#pragma unroll
    for (int n = 0; n < x.COUNT; n++) {
        x.of[n] = isKept(mixed, column + n, threshold) ? __fmul_rn(x.of[n], scale) : 0;
    }
}

// y = kept ? x * scale : 0, or added to y; of each row a key of two words, lower first.
extern "C" __global__ void dropout(ConstFloats x, const unsigned* __restrict__ keys, unsigned long long site, int firstColumn,
                                   unsigned threshold, float scale, int accumulate, Floats y, int rows, int columns) {
    eachFour(rows, columns, isAligned(x) && isAligned(y), [&](int i, int j, auto value) {
        dropped(value = value.at(&x.at(i, j)), keys + 2LL * i, site, firstColumn + j, threshold, scale);
        if (accumulate) {
            auto sum = value.at(&y.at(i, j));
#pragma unroll
            for (int n = 0; n < sum.COUNT; n++) {
                value.of[n] = sum.of[n] + value.of[n];
            }
        }
        value.storeAt(&y.at(i, j));
    });
}

extern "C" __global__ void dropoutOfHalves(View<const unsigned short> x, const unsigned* __restrict__ keys,
                                           unsigned long long site, int firstColumn, unsigned threshold, float scale,
                                           int accumulate, Halves y, int rows, int columns) {
    eachFour(rows, columns, isAligned(x) && isAligned(y), [&](int i, int j, auto value) {
        dropped(value = value.at(&x.at(i, j)), keys + 2LL * i, site, firstColumn + j, threshold, scale);
        value.storeAt(&y.at(i, j));
    });
}

// Turns pairs of columns j and j + half of every head; row i by the cosines and sines of row i % positions. Sign -1: back.
extern "C" __global__ void rotate(Floats x, ConstFloats turns, int positions, int half, float sign, int rows, int pairs) {
    eachFour(rows, pairs, isAligned(x) && isAligned(turns) && half % 4 == 0, [&](int i, int j, auto x1) {
        int pair = j % half, first = j / half * 2 * half + pair;
        auto cosine = x1.at(&turns.at(i % positions, pair)), sine = x1.at(&turns.at(i % positions, half + pair));
        auto x2 = x1.at(&x.at(i, first + half));
        x1 = x1.at(&x.at(i, first));
#pragma unroll
        for (int n = 0; n < x1.COUNT; n++) {
            float s = __fmul_rn(sine.of[n], sign), turned = fmaf(x1.of[n], cosine.of[n], -__fmul_rn(x2.of[n], s));
            x2.of[n] = fmaf(x1.of[n], s, __fmul_rn(x2.of[n], cosine.of[n]));
            x1.of[n] = turned;
        }
        x1.storeAt(&x.at(i, first));
        x2.storeAt(&x.at(i, first + half));
    });
}

// y += x
extern "C" __global__ void add(ConstFloats x, Floats y, int rows, int columns) {
    eachFour(
        rows, columns, isAligned(x) && isAligned(y),
        [&](int i, int j, auto sum) {
            auto more = sum.at(&x.at(i, j));
            sum = sum.at(&y.at(i, j));
#pragma unroll
            for (int n = 0; n < sum.COUNT; n++) {
                sum.of[n] += more.of[n];
            }
            return sum;
        },
        [&](int i, int j, auto sum) { sum.storeAt(&y.at(i, j)); });
}

// y += x of 64-bit integers
extern "C" __global__ void addLongs(View<const long long> x, View<long long> y, int rows, int columns) {
    eachFour(rows, columns, isAligned(x) && isAligned(y), [&](int i, int j, auto some) {
        auto sum = bitsAt<decltype(some)::COUNT>(&y.at(i, j)), more = bitsAt<decltype(some)::COUNT>(&x.at(i, j));
#pragma unroll
        for (int n = 0; n < some.COUNT; n++) {
            sum.of[n] += more.of[n];
        }
        store(&y.at(i, j), sum);
    });
}

// The floats nearest to integers with 44 bits behind the point: Java's FixedPoint.
extern "C" __global__ void unfoldGradient(View<const long long> sum, Floats gradient, int rows, int columns) {
    eachFour(rows, columns, isAligned(sum) && isAligned(gradient), [&](int i, int j, auto some) {
        auto integers = bitsAt<decltype(some)::COUNT>(&sum.at(i, j));
#pragma unroll
        for (int n = 0; n < some.COUNT; n++) {
            some.of[n] = static_cast<float>(integers.of[n]) * 0x1p-44f;
        }
        some.storeAt(&gradient.at(i, j));
    });
}

// y = a x + b y
extern "C" __global__ void blend(float a, ConstFloats x, float b, Floats y, int rows, int columns) {
    eachFour(
        rows, columns, isAligned(x) && isAligned(y),
        [&](int i, int j, auto some) { return Pair<decltype(some)>{some.at(&x.at(i, j)), some.at(&y.at(i, j))}; },
        [&](int i, int j, auto both) {
            auto mixed = both.second;
#pragma unroll
            for (int n = 0; n < mixed.COUNT; n++) {
                mixed.of[n] = fmaf(a, both.first.of[n], b * mixed.of[n]);
            }
            mixed.storeAt(&y.at(i, j));
        });
}

// y -= x
extern "C" __global__ void subtract(ConstFloats x, Floats y, int rows, int columns) {
    eachFour(
        rows, columns, isAligned(x) && isAligned(y),
        [&](int i, int j, auto rest) {
            auto less = rest.at(&x.at(i, j));
            rest = rest.at(&y.at(i, j));
#pragma unroll
            for (int n = 0; n < rest.COUNT; n++) {
                rest.of[n] -= less.of[n];
            }
            return rest;
        },
        [&](int i, int j, auto rest) { rest.storeAt(&y.at(i, j)); });
}

template <class T>
__device__ __forceinline__ void copyTo(const View<const T>& x, const View<T>& y, int rows, int columns) {
    eachFour(
        rows, columns, isAligned(x) && isAligned(y),
        [&](int i, int j, auto some) { return bitsAt<decltype(some)::COUNT>(&x.at(i, j)); },
        [&](int i, int j, auto some) { store(&y.at(i, j), some); });
}

// y = x, elements of 4 bytes
extern "C" __global__ void copyWords(View<const unsigned> x, View<unsigned> y, int rows, int columns) {
    copyTo(x, y, rows, columns);
}

// y = x, elements of 2 bytes
extern "C" __global__ void copyHalves(View<const unsigned short> x, View<unsigned short> y, int rows, int columns) {
    copyTo(x, y, rows, columns);
}

extern "C" __global__ void narrow(ConstFloats x, Halves y, int rows, int columns) {
    eachFour(
        rows, columns, isAligned(x) && isAligned(y), [&](int i, int j, auto some) { return some.at(&x.at(i, j)); },
        [&](int i, int j, auto some) { some.storeAt(&y.at(i, j)); });
}

extern "C" __global__ void widen(View<const unsigned short> x, Floats y, int rows, int columns) {
    eachFour(
        rows, columns, isAligned(x) && isAligned(y), [&](int i, int j, auto some) { return some.at(&x.at(i, j)); },
        [&](int i, int j, auto some) { some.storeAt(&y.at(i, j)); });
}

// The numbers of an AdamW update, computed once per tensor in double.
struct AdamW {
    float gradient, keep, beta1, oneMinusBeta1, beta2, oneMinusBeta2, rate, inverseRoot, epsilon;
};

struct Moments {
    float weight, gradient, m, v;
};

// Says itself what is fused: left to the compiler, that would depend on the kernel, and so would the weights' last bit.
__device__ __forceinline__ void update(Moments& of, float keep, const AdamW& f) {
    float g = of.gradient * f.gradient;
    of.m = fmaf(of.m, f.beta1, g * f.oneMinusBeta1);
    of.v = fmaf(of.v, f.beta2, g * g * f.oneMinusBeta2);
    of.weight = fmaf(-(of.m / fmaf(sqrtf(of.v), f.inverseRoot, f.epsilon)), f.rate, of.weight * keep);
}

constexpr int UPDATE_THREADS = 256;
constexpr int UPDATED_PER_BLOCK = 4096;

// A parameter of an update, the rounded copy of its weight or null, and what is kept of the weight; its runs of 4096 elements
// are numbered through all parameters.
struct Updated {
    float *weight, *gradient, *m, *v;
    unsigned short* rounded;
    long long elements, firstRun;
    float keep;
};

// Updates a run's elements, and rounded = weight unless that is null; gradients are zeroed for the next step.
__device__ __forceinline__ void updateRun(float* weight, float* gradient, float* m, float* v, unsigned short* rounded,
                                          int elements, float keep, const AdamW& f) {
    bool aligned = isAligned(weight) && isAligned(gradient) && isAligned(m) && isAligned(v) && isAligned(rounded);
    int fours = aligned ? elements / 4 : 0;
    auto change = [&](int j, auto w, auto g, auto means, auto squares) {
#pragma unroll
        for (int n = 0; n < w.COUNT; n++) {
            Moments of{w.of[n], g.of[n], means.of[n], squares.of[n]};
            update(of, keep, f);
            w.of[n] = of.weight;
            means.of[n] = of.m;
            squares.of[n] = of.v;
            g.of[n] = 0;
        }
        w.storeAt(weight + j);
        g.storeAt(gradient + j);
        means.storeAt(m + j);
        squares.storeAt(v + j);
        if (rounded) {
            w.storeAt(rounded + j);
        }
    };
    // two of each are under way before the first is stored: a compiler cannot know that what is stored there is not loaded next
    constexpr int AT_ONCE = 2;
    using Four = Neighbours<4>;
    for (int i = threadIdx.x; i < fours; i += AT_ONCE * UPDATE_THREADS) {
        Four held[AT_ONCE][4];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            int at = i + k * UPDATE_THREADS, j = 4 * (at < fours ? at : i);
            held[k][0] = Four::at(weight + j);
            held[k][1] = Four::at(gradient + j);
            held[k][2] = Four::at(m + j);
            held[k][3] = Four::at(v + j);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            int at = i + k * UPDATE_THREADS;
            if (at < fours) {
                change(4 * at, held[k][0], held[k][1], held[k][2], held[k][3]);
            }
        }
    }
    using One = Neighbours<1>;
    for (int j = 4 * fours + threadIdx.x; j < elements; j += UPDATE_THREADS) {
        change(j, One::at(weight + j), One::at(gradient + j), One::at(m + j), One::at(v + j));
    }
}

// arXiv 1711.05101, Algorithm 2.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    adamW(float* weight, float* gradient, float* m, float* v, long long elements, AdamW f) {
    for (long long i = blockIdx.x * static_cast<long long>(UPDATED_PER_BLOCK); i < elements;
         i += gridDim.x * static_cast<long long>(UPDATED_PER_BLOCK)) {
        int here = static_cast<int>(min(elements - i, static_cast<long long>(UPDATED_PER_BLOCK)));
        updateRun(weight + i, gradient + i, m + i, v + i, nullptr, here, f.keep, f);
    }
}

// adamW of many parameters, a block for each run, and rounded = weight.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    adamWOfRuns(const Updated* __restrict__ parameters, int count, AdamW f) {
    int parameter = 0;
    for (int step = 1 << (31 - __clz(count)); step > 0; step /= 2) {
        if (parameter + step < count && parameters[parameter + step].firstRun <= blockIdx.x) {
            parameter += step;
        }
    }
    const Updated& p = parameters[parameter];
    long long first = (blockIdx.x - p.firstRun) * UPDATED_PER_BLOCK;
    int elements = static_cast<int>(min(p.elements - first, static_cast<long long>(UPDATED_PER_BLOCK)));
    unsigned short* rounded = p.rounded ? p.rounded + first : nullptr;
    updateRun(inGlobal(p.weight + first), inGlobal(p.gradient + first), inGlobal(p.m + first), inGlobal(p.v + first),
              inGlobal(rounded), elements, p.keep, f);
}
