// What an emulated library beside the driver needs of the emulated machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

// The device of the calling thread's context, or -1.
extern "C" int penstockEmulatorDevice();

// Whether these bytes are one allocation's, on whatever device.
extern "C" bool penstockEmulatorHolds(uint64_t address, size_t bytes);

// Work that counts as a kernel's launch; returns a CUresult. Nothing runs in a context that failed.
extern "C" int penstockEmulatorLaunch(void* stream, std::function<void()> work);
