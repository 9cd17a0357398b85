// Watches what the threads of a grid read and write: races between them, and the bytes that they move. The kernels of such a
// grid are those of libpenstock-checked.so, which g++ compiled with -fsanitize=thread: it calls the functions __tsan_* of
// check.cpp before every access.
#pragma once
#include <string>

#include "grid.h"

namespace emulator {

// The kernel with calls before its accesses, or the kernel itself unless CHECKED names their library.
const Kernel* asWatched(const Kernel* kernel);

// A grid begins and ends on this OS thread; one of its blocks begins. Ranges lie in the emulator and belong to no kernel.
void watchGrid(const Grid& grid, Range stacks, Range warps, Range threads);
void watchBlock(unsigned long block, Range dynamicShared);
void endWatch();

// All lanes of the mask have met at a barrier that orders what they read and wrote.
void watchMeeting(int warp, unsigned mask);

// An access of the current thread that g++ does not see. Nothing happens unless its grid is watched.
void watchAccess(const void* at, size_t bytes, bool writes);

// What kernels and libraries did since this was last asked: lines of name, launches, bytes read, bytes written (a word counts
// once in a launch), floating-point operations of tensor cores. Kernels have bytes and operations only if they are watched.
void count(const std::string& name, long read, long written, double operations);
std::string counted();

}  // namespace emulator
