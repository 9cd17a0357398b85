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

// Lanes leave values for each other and wait with an exchange of registers, which orders no memory.
extern "C" __global__ void exchangeForBarrier(float* result) {
    __shared__ float values[64];
    values[threadIdx.x] = threadIdx.x;
    float sum = __shfl_xor_sync(ALL_LANES, 1.0f, 1);
    result[threadIdx.x] = sum + values[threadIdx.x ^ 1];
}

// A block counts on what another block of the same launch writes.
extern "C" __global__ void crossedBlocks(float* result) {
    if (threadIdx.x == 0) {
        result[blockIdx.x] = 1;
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        result[2 + blockIdx.x] = result[(blockIdx.x + 1) % gridDim.x];
    }
}

// A copy is waited for behind the barrier that should have made it known.
extern "C" __global__ void lateWait(float* result) {
    __shared__ __align__(16) float values[4 * 64];
    beginCopy(values + 4 * threadIdx.x, result, true);
    __syncthreads();
    finishCopies();
    float sum = values[4 * ((threadIdx.x + 1) % 64)];
    __syncthreads();
    result[threadIdx.x] = sum;
}

// Four numbers are loaded together from an address that only suits one.
extern "C" __global__ void misalignedLoad(float* result) { result[threadIdx.x] = Neighbours<4>::at(result + 1).of[0]; }

// Same of a store of four halves, and of a copy into shared memory.
extern "C" __global__ void misalignedStore(float* result) {
    Neighbours<4>{}.storeAt(reinterpret_cast<unsigned short*>(result) + 2);
}

extern "C" __global__ void misalignedCopy(float* result) {
    __shared__ __align__(16) float values[4];
    beginCopy(values, result + 2, true);
    finishCopies();
    result[threadIdx.x] = values[0];
}

// Nothing wrong: barriers of blocks and of warps, bytes of one word by two threads, atomics of two blocks.
extern "C" __global__ void wellBehaved(float* result) {
    __shared__ float values[64];
    __shared__ unsigned short halves[64];
    values[threadIdx.x] = threadIdx.x;
    halves[threadIdx.x] = threadIdx.x;
    __syncwarp();
    float sum = values[threadIdx.x ^ 1];
    __syncthreads();
    values[threadIdx.x] = sum + halves[63 - threadIdx.x];
    __syncthreads();
    atomicAdd(reinterpret_cast<int*>(result) + 63, 1);
    if (threadIdx.x < 32 && blockIdx.x == 0) {
        result[threadIdx.x] = values[threadIdx.x + 32];
    }
}
