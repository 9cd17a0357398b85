// Kernels with the faults that the emulator is there to find.
#include "tensors.cuh"

// Every thread reads its neighbour's value without waiting for it: what comes depends on who runs first.
extern "C" __global__ void missingBarrier(float* result) {
    __shared__ float values[64];
    values[threadIdx.x] = 0;
    __syncthreads();
    values[threadIdx.x] = threadIdx.x + 1;
    result[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}

// Half of a warp waits for the other half, which never comes.
extern "C" __global__ void divergentBarrier(float* result) {
    if (threadIdx.x < 16) {
        result[threadIdx.x] = warpSum(1);
    } else {
        __syncthreads();
    }
}

// A lane takes part in an exchange whose mask leaves it out.
extern "C" __global__ void wrongMask(float* result) { result[threadIdx.x] = __shfl_xor_sync(0xffffu, 1.0f, 1); }
