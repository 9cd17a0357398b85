// The only file with PTX. Where g++ compiles the kernels for tests, an emulator supplies these functions.
#pragma once
#ifdef __CUDACC__

// The shared memory whose size the launch gives.
template <class T>
__device__ __forceinline__ T* dynamicShared() {
    extern __shared__ __align__(16) unsigned char sharedBytes[];
    return reinterpret_cast<T*>(sharedBytes);
}

// d[16, 8] += a[16, 16] b[16, 8] in bf16 with F32 sums, by a whole warp; fragments as in the PTX ISA.
__device__ __forceinline__ void multiplyTiles(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8 x 8 matrices of halves out of shared memory; lane i points at row i % 8 of matrix i / 8.
__device__ __forceinline__ void loadTiles(unsigned (&tiles)[4], const void* row) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
}

// Same, each matrix transposed on its way: a thread gets two rows of a column where it would get two columns of a row.
__device__ __forceinline__ void loadTilesTransposed(unsigned (&tiles)[4], const void* row) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(address)
                 : "memory");
}

// Begins to copy 16 bytes into shared memory, or zeros unless they are there; both ends lie at multiples of 16 bytes.
__device__ __forceinline__ void beginCopy(void* to, const void* from, bool isThere) {
    unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    int bytes = isThere ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" : : "r"(address), "l"(from), "r"(bytes) : "memory");
}

// Waits for the copies that this thread began; a barrier makes them known to the others.
__device__ __forceinline__ void finishCopies() { asm volatile("cp.async.wait_all;\n" : : : "memory"); }

// Two numbers rounded to bf16, to nearest, ties to even; the first in the lower half. NaN stays NaN.
__device__ __forceinline__ unsigned pairOfHalves(float first, float second) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

// 2 to the power x within two units of the last place; results below the least normal number are 0.
__device__ __forceinline__ float powerOfTwo(float x) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(x));
    return power;
}

// The same address, which lies in global memory (null does too): loads and stores need not find out which memory it is in.
template <class T>
__device__ __forceinline__ T* inGlobal(T* address) {
    __builtin_assume(__isGlobal(address));
    return address;
}

// An emulator counts what a thread multiplied and added outside tensor cores.
__device__ __forceinline__ void didOperations(int) {}

// The same number; what is computed from it is computed after this and keeps no register busy before.
__device__ __forceinline__ int onlyHere(int number) {
    asm volatile("" : "+r"(number));
    return number;
}

#endif
