#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace emulator {

static constexpr size_t PAGE = 4096;

#if defined(__x86_64__)

// the callee-saved registers of the System V ABI; everything else is dead across a call
asm(R"(
.text
.type penstock_emulator_switch,@function
penstock_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq (%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
extern "C" void penstockEmulatorSwitch(void** saved, void** next) asm("penstock_emulator_switch");

void switchTo(Resume& saved, Resume& next) {
    penstockEmulatorSwitch(&saved.stackPointer, &next.stackPointer);
}

#else

void switchTo(Resume& saved, Resume& next) { swapcontext(&saved.context, &next.context); }

#endif

Stacks::Stacks(int count) : count(count) {
    void* memory = mmap(nullptr, BYTES * count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    base = static_cast<char*>(memory);
    for (int i = 0; i < count; i++) {
        mprotect(base + i * BYTES, PAGE, PROT_NONE);
    }
}

Stacks::~Stacks() { munmap(base, BYTES * count); }

Resume Stacks::begin(int i, void (*entry)()) {
    char* stack = base + i * BYTES;
    Resume resume;
#if defined(__x86_64__)
    // tops differ in their cache lines, or all fibers would fight for the same few sets
    char* top = stack + BYTES - (i % 64 + 1) * 128;
    void** frame = reinterpret_cast<void**>(top) - 8;
    memset(frame, 0, 8 * sizeof(void*));
    frame[6] = reinterpret_cast<void*>(entry);
    resume.stackPointer = frame;
#else
    getcontext(&resume.context);
    resume.context.uc_stack.ss_sp = stack + PAGE;
    resume.context.uc_stack.ss_size = BYTES - PAGE;
    resume.context.uc_link = nullptr;
    makecontext(&resume.context, entry, 0);
#endif
    return resume;
}

}  // namespace emulator
