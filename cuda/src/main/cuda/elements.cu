// Element by element: biases, residuals, GELU, copies, AdamW.
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

// y += bias
extern "C" __global__ void addBias(Floats y, const float* __restrict__ bias, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) += bias[j]; });
}

// y = (y + bias) + residual
extern "C" __global__ void addBiasAndResidual(Floats y, const float* __restrict__ bias, ConstFloats residual, int rows,
                                              int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) = (y.at(i, j) + bias[j]) + residual.at(i, j); });
}

constexpr float SQRT_2_OVER_PI = 0.7978845608028654f;
constexpr float CUBIC = 0.044715f;

__device__ __forceinline__ float tanhOfGelu(float x) { return tanhf(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)); }

// pre += bias; y = gelu(pre), tanh form. The backward needs pre.
extern "C" __global__ void biasGelu(Floats pre, const float* __restrict__ bias, Floats y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) {
        float x = pre.at(i, j) + bias[j];
        pre.at(i, j) = x;
        y.at(i, j) = 0.5f * x * (1 + tanhOfGelu(x));
    });
}

// dy *= gelu'(pre)
extern "C" __global__ void geluBackward(ConstFloats pre, Floats dy, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) {
        float x = pre.at(i, j), t = tanhOfGelu(x);
        float inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * x * x);
        dy.at(i, j) *= 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner;
    });
}

// y += x
extern "C" __global__ void add(ConstFloats x, Floats y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) += x.at(i, j); });
}

// y = x, elements of 4 bytes
extern "C" __global__ void copyWords(View<const unsigned> x, View<unsigned> y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) = x.at(i, j); });
}

// y = x, elements of 2 bytes
extern "C" __global__ void copyHalves(View<const unsigned short> x, View<unsigned short> y, int rows, int columns) {
    eachElement(rows, columns, [&](int i, int j) { y.at(i, j) = x.at(i, j); });
}

// Rows that begin at 16 bytes, and their halves at 8, go four columns at a time: the memory gives whole lines sooner.
extern "C" __global__ void narrow(ConstFloats x, View<unsigned short> y, int rows, int columns) {
    bool fours = (reinterpret_cast<unsigned long long>(x.data) % 16 | x.stride % 4 |
                  reinterpret_cast<unsigned long long>(y.data) % 8 | y.stride % 4) == 0;
    int inFours = fours ? columns / 4 : 0;
    eachElement(rows, inFours, [&](int i, int j) {
        float4 four = reinterpret_cast<const float4*>(x.row(i))[j];
        reinterpret_cast<ushort4*>(y.row(i))[j] =
            make_ushort4(toBFloat16(four.x), toBFloat16(four.y), toBFloat16(four.z), toBFloat16(four.w));
    });
    eachElement(rows, columns - 4 * inFours, [&](int i, int j) {
        y.at(i, 4 * inFours + j) = toBFloat16(x.at(i, 4 * inFours + j));
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
