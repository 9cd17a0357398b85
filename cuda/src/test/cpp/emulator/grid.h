// Runs a grid of CUDA threads: blocks one after the other, the threads of a block as fibers of one OS thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fiber.h"

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    unsigned long volume() const { return static_cast<unsigned long>(x) * y * z; }
};

namespace emulator {

// What the library of checked kernels finds here.
#define FOR_KERNELS __attribute__((visibility("default")))

// A kernel of the sources, as g++ compiled it.
struct Kernel {
    std::string name;
    void (*call)(void** parameters);
    std::vector<size_t> parameterBytes;
    bool isWatched = false;
};

FOR_KERNELS void enlist(const Kernel& kernel);
// Of a kernel that is compiled for check.h.
FOR_KERNELS void enlistWatched(const Kernel& kernel);
// Null if there is none of this name.
const Kernel* findKernel(const std::string& name);

struct Grid {
    int device;
    const Kernel* kernel;
    dim3 blocks;
    dim3 threads;
    size_t dynamicSharedBytes;
    std::vector<std::vector<char>> parameters;
};

// Runs all blocks; empty if all went well, otherwise what a thread did wrong.
std::string run(const Grid& grid);

// A barrier that a known number of threads must reach, and their mailboxes; two sets of mailboxes in
// turn, so that one barrier per exchange is enough.
struct Barrier {
    unsigned mask = 0;
    int arrived = 0;
    unsigned generation = 0;
    bool ordersMemory = false;
    alignas(16) unsigned char mailbox[2][32][64];
};

struct Warp {
    static constexpr int MASKS = 8;
    unsigned alive = 0;
    int barriers = 0;
    Barrier barrier[MASKS];
};

struct Block {
    dim3 grid, threads;
    uint3 index;
    char* dynamicShared;
    int alive;
    int arrived;
    unsigned generation;
};

// A copy that a thread began: the bytes are somewhere between its ends until the thread waits for them.
struct Copy {
    void* to;
    const void* from;
    bool isThere;
};

struct Thread {
    Resume resume;
    Block* block;
    Warp* warp;
    uint3 index;
    int lane;
    bool done;
    const unsigned* waitsFor;  // a generation that must move on, or null
    unsigned generation;
    std::vector<Copy> copies;
};

extern FOR_KERNELS thread_local Thread* current;

FOR_KERNELS void synchronizeBlock();
FOR_KERNELS Barrier& warpBarrier(unsigned mask);
// What lanes exchange passes between them; only a barrier says that other memory does too.
FOR_KERNELS void synchronizeWarp(Barrier& barrier, bool ordersMemory);
// Copies of 16 bytes into shared memory: begun, and waited for by the thread that began them.
FOR_KERNELS void beginCopyOf16(void* to, const void* from, bool isThere);
FOR_KERNELS void finishCopiesOf16();
// A lane's share of what tensor cores compute.
FOR_KERNELS void watchOperations(double operations);
// Ends the grid with an error unless the address is a multiple of so many bytes.
FOR_KERNELS void requireAligned(const void* address, size_t bytes);
// Ends the grid with an error.
[[noreturn]] FOR_KERNELS void trap(const std::string& why);

}  // namespace emulator
