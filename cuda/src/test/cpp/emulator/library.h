// What an emulated library beside the driver needs of the emulated machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

// The device of the calling thread's context, or -1.
extern "C" int penstockEmulatorDevice();

// Whether these bytes are one allocation's, on whatever device.
extern "C" bool penstockEmulatorHolds(uint64_t address, size_t bytes);

// For check.h, once per call of the library.
extern "C" void penstockEmulatorCount(const char* name, long read, long written, double operations);

// Work that counts as a kernel's launch; returns a CUresult. Nothing runs in a context that failed.
extern "C" int penstockEmulatorLaunch(void* stream, std::function<void()> work);

// A setting of settings.h.
extern "C" long penstockEmulatorNumber(const char* name, long otherwise);
