// Fibers: many threads of control on one OS thread, switched by hand. A CUDA thread is one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {

// Where a suspended thread of control goes on.
struct Resume {
#if defined(__x86_64__)
    void* stackPointer = nullptr;
#else
    ucontext_t context;
#endif
};

// Saves where the caller is and goes on elsewhere.
void switchTo(Resume& saved, Resume& next);

struct Range {
    const void* from;
    size_t bytes;
    bool holds(uint64_t address) const { return address - reinterpret_cast<uint64_t>(from) < bytes; }
};

// Stacks with a guard page below each, so that an overflow is a fault and not a wrong result.
class Stacks {
  public:
    static constexpr size_t BYTES = 64 << 10;

    explicit Stacks(int count);
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    // Makes a fiber on the i-th stack that begins in entry, which must never return.
    Resume begin(int i, void (*entry)());

  public:
    // Where they all lie.
    Range range() const { return {base, BYTES * count}; }

  private:
    char* base;
    int count;
};

}  // namespace emulator
