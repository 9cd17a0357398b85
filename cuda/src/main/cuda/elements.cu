// Element by element: biases, residuals, GELU and gates, rotary positions, copies, AdamW.
#include "tensors.cuh"

// Calls work(row, column) for every element; four columns of a thread are under way together.
template <class Work>
__device__ __forceinline__ void eachElement(int rows, int columns, Work work) {
    for (int row = blockIdx.y; row < rows; row += gridDim.y) {
        long long step = static_cast<long long>(gridDim.x) * blockDim.x * 4;
        for (long long first = blockIdx.x * blockDim.x * 4LL + threadIdx.x; first < columns; first += step) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                long long column = first + i * static_cast<long long>(blockDim.x);
                if (column < columns) {
                    work(row, static_cast<int>(column));
                }
            }
        }
    }
}

// Neighbouring floats of a row, loaded and stored by one instruction: memory gives whole lines sooner than words.
template <int N>
struct Neighbours {
    static constexpr int COUNT = N;
    float of[N];

    static __device__ __forceinline__ Neighbours at(const float* from) {
        if constexpr (N == 4) {
            float4 four = *reinterpret_cast<const float4*>(from);
            return {four.x, four.y, four.z, four.w};
        } else {
            return {*from};
        }
    }

    __device__ __forceinline__ void storeAt(float* to) const {
        if constexpr (N == 4) {
            *reinterpret_cast<float4*>(to) = make_float4(of[0], of[1], of[2], of[3]);
        } else {
            *to = of[0];
        }
    }
};

__device__ __forceinline__ bool isAligned(const float* data, long long stride = 0) {
    return (reinterpret_cast<unsigned long long>(data) % 16 | stride % 4) == 0;
}

template <class T>
__device__ __forceinline__ bool isAligned(const View<T>& view) {
    return isAligned(view.data, view.stride);
}

// Calls work(row, column, Neighbours<n>()) for all elements, n at a time: four if all rows begin at 16 bytes, else one.
template <class Work>
__device__ __forceinline__ void eachFour(int rows, int columns, bool aligned, Work work) {
    int fours = aligned ? columns / 4 : 0;
    eachElement(rows, fours, [&](int i, int j) { work(i, 4 * j, Neighbours<4>()); });
    eachElement(rows, columns - 4 * fours, [&](int i, int j) { work(i, 4 * fours + j, Neighbours<1>()); });
}

// y += bias
extern "C" __global__ void addBias(Floats y, const float* __restrict__ bias, int rows, int columns) {
    eachFour(rows, columns, isAligned(y) && isAligned(bias), [&](int i, int j, auto sum) {
        auto b = sum.at(bias + j);
        sum = sum.at(&y.at(i, j));
#pragma unroll
        for (int n = 0; n < sum.COUNT; n++) {
            sum.of[n] += b.of[n];
        }
        sum.storeAt(&y.at(i, j));
    });
}

// y = (y + bias) + residual
extern "C" __global__ void addBiasAndResidual(Floats y, const float* __restrict__ bias, ConstFloats residual, int rows,
                                              int columns) {
    eachFour(rows, columns, isAligned(y) && isAligned(bias) && isAligned(residual), [&](int i, int j, auto sum) {
        auto b = sum.at(bias + j), r = sum.at(&residual.at(i, j));
        sum = sum.at(&y.at(i, j));
#pragma unroll
        for (int n = 0; n < sum.COUNT; n++) {
            sum.of[n] = (sum.of[n] + b.of[n]) + r.of[n];
        }
        sum.storeAt(&y.at(i, j));
    });
}

constexpr float SQRT_2_OVER_PI = 0.7978845608028654f;
constexpr float CUBIC = 0.044715f;

__device__ __forceinline__ float tanhOfGelu(float x) { return tanhf(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)); }

// pre += bias; y = gelu(pre), tanh form. The backward needs pre.
extern "C" __global__ void biasGelu(Floats pre, const float* __restrict__ bias, Floats y, int rows, int columns) {
    eachFour(rows, columns, isAligned(pre) && isAligned(bias) && isAligned(y), [&](int i, int j, auto x) {
        auto b = x.at(bias + j), gelu = b;
        x = x.at(&pre.at(i, j));
#pragma unroll
        for (int n = 0; n < x.COUNT; n++) {
            x.of[n] += b.of[n];
            gelu.of[n] = 0.5f * x.of[n] * (1 + tanhOfGelu(x.of[n]));
        }
        x.storeAt(&pre.at(i, j));
        gelu.storeAt(&y.at(i, j));
    });
}

// dy *= gelu'(pre)
extern "C" __global__ void geluBackward(ConstFloats pre, Floats dy, int rows, int columns) {
    eachFour(rows, columns, isAligned(pre) && isAligned(dy), [&](int i, int j, auto gradient) {
        auto x = gradient.at(&pre.at(i, j));
        gradient = gradient.at(&dy.at(i, j));
#pragma unroll
        for (int n = 0; n < x.COUNT; n++) {
            float t = tanhOfGelu(x.of[n]);
            float inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x.of[n] * x.of[n]);
            gradient.of[n] *= 0.5f * (1 + t) + 0.5f * x.of[n] * (1 - t * t) * inner;
        }
        gradient.storeAt(&dy.at(i, j));
    });
}

constexpr float INVERSE_ROOT_2 = 0.7071067811865476f;
constexpr float INVERSE_ROOT_2_PI = 0.3989422804014327f;

// The share of the standard normal distribution below x.
__device__ __forceinline__ float normalBelow(float x) { return 0.5f * erfcf(-x * INVERSE_ROOT_2); }

// pre += bias; y = gelu(pre), exact form. The backward needs pre.
extern "C" __global__ void biasExactGelu(Floats pre, const float* __restrict__ bias, Floats y, int rows, int columns) {
    eachFour(rows, columns, isAligned(pre) && isAligned(bias) && isAligned(y), [&](int i, int j, auto x) {
        auto b = x.at(bias + j), gelu = b;
        x = x.at(&pre.at(i, j));
#pragma unroll
        for (int n = 0; n < x.COUNT; n++) {
            x.of[n] += b.of[n];
            gelu.of[n] = x.of[n] * normalBelow(x.of[n]);
        }
        x.storeAt(&pre.at(i, j));
        gelu.storeAt(&y.at(i, j));
    });
}

// dy *= gelu'(pre), exact form
extern "C" __global__ void exactGeluBackward(ConstFloats pre, Floats dy, int rows, int columns) {
    eachFour(rows, columns, isAligned(pre) && isAligned(dy), [&](int i, int j, auto gradient) {
        auto x = gradient.at(&pre.at(i, j));
        gradient = gradient.at(&dy.at(i, j));
#pragma unroll
        for (int n = 0; n < x.COUNT; n++) {
            float density = INVERSE_ROOT_2_PI * expf(-0.5f * x.of[n] * x.of[n]);
            gradient.of[n] *= normalBelow(x.of[n]) + x.of[n] * density;
        }
        gradient.storeAt(&dy.at(i, j));
    });
}

// z = silu(a) * b; gated is a, beside it b, each of so many columns.
extern "C" __global__ void swiGlu(ConstFloats gated, Floats z, int rows, int columns) {
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

// da = dz b s (1 + a (1 - s)), db = dz a s with s = 1 / (1 + exp(-a)); dGated may be gated.
extern "C" __global__ void swiGluBackward(ConstFloats gated, ConstFloats dz, Floats dGated, int rows, int columns) {
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

// Turns pairs of columns j and j + half of every head; row i by the cosines and sines of row i % positions. Sign -1: back.
extern "C" __global__ void rotate(Floats x, ConstFloats turns, int positions, int half, float sign, int rows, int pairs) {
    eachElement(rows, pairs, [&](int i, int j) {
        int pair = j % half, first = j / half * 2 * half + pair;
        float cosine = turns.at(i % positions, pair), sine = turns.at(i % positions, half + pair) * sign;
        float x1 = x.at(i, first), x2 = x.at(i, first + half);
        x.at(i, first) = x1 * cosine - x2 * sine;
        x.at(i, first + half) = x2 * cosine + x1 * sine;
    });
}

// y += x
extern "C" __global__ void add(ConstFloats x, Floats y, int rows, int columns) {
    eachFour(rows, columns, isAligned(x) && isAligned(y), [&](int i, int j, auto sum) {
        auto more = sum.at(&x.at(i, j));
        sum = sum.at(&y.at(i, j));
#pragma unroll
        for (int n = 0; n < sum.COUNT; n++) {
            sum.of[n] += more.of[n];
        }
        sum.storeAt(&y.at(i, j));
    });
}

// y = x, elements of 4 bytes
extern "C" __global__ void copyWords(View<const unsigned> x, View<unsigned> y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) = x.at(i, j); });
}

// y = x, elements of 2 bytes
extern "C" __global__ void copyHalves(View<const unsigned short> x, View<unsigned short> y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) = x.at(i, j); });
}

extern "C" __global__ void narrow(ConstFloats x, View<unsigned short> y, int rows, int columns) {
    bool aligned = isAligned(x) && (reinterpret_cast<unsigned long long>(y.data) % 8 | y.stride % 4) == 0;
    eachFour(rows, columns, aligned, [&](int i, int j, auto some) {
        some = some.at(&x.at(i, j));
        if constexpr (some.COUNT == 4) {
            *reinterpret_cast<ushort4*>(&y.at(i, j)) = make_ushort4(toBFloat16(some.of[0]), toBFloat16(some.of[1]),
                                                                    toBFloat16(some.of[2]), toBFloat16(some.of[3]));
        } else {
            y.at(i, j) = toBFloat16(some.of[0]);
        }
    });
}

extern "C" __global__ void widen(View<const unsigned short> x, Floats y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) = fromBFloat16(x.at(i, j)); });
}

// The numbers of an AdamW update, computed once per tensor in double.
struct AdamW {
    float gradient, keep, beta1, oneMinusBeta1, beta2, oneMinusBeta2, rate, inverseRoot, epsilon;
};

// arXiv 1711.05101, Algorithm 2; the gradient is zeroed for the next step.
extern "C" __global__ void adamW(float* __restrict__ weight, float* __restrict__ gradient, float* __restrict__ m,
                                 float* __restrict__ v, long long elements, AdamW f) {
    long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; i < elements; i += step) {
        float g = gradient[i] * f.gradient;
        float first = m[i] * f.beta1 + g * f.oneMinusBeta1;
        float second = v[i] * f.beta2 + g * g * f.oneMinusBeta2;
        weight[i] = weight[i] * f.keep - first / (sqrtf(second) * f.inverseRoot + f.epsilon) * f.rate;
        m[i] = first;
        v[i] = second;
        gradient[i] = 0;
    }
}
