// What tests may set: environment variables PENSTOCK_EMULATOR_<NAME>, or penstockEmulatorSet at run time.
#pragma once
#include <string>

namespace emulator {

// DEVICES: how many; MEMORY_MIB: of each; THREAD_ORDER: forward, reverse or shuffled:SEED, one
// for all devices or one each with commas between;
// FAIL_LAUNCH: device:n, the n-th launch from now fails; LOSE_DEVICE: device:n, it is lost at that launch;
// COPY_MILLIS: how long every copy lasts at least, so that who does not wait for it is found out;
// LOSE_AT_COPY: device:n, it is lost while the n-th copy of its streams between devices runs; LOSE_AT_HOST_COPY: the same of
// copies to and from the host; NO_PEERS: no device sees another's memory;
// SAME_GPU: all devices are one, as if each were seen by a process of its own;
// CHECKED: libpenstock-checked.so, whose kernels say what they read and write (check.h);
// CAPABILITY: the major number of theirs.
std::string setting(const char* name, const char* otherwise);

// Of a list with commas between, the one of this device, or the last.
std::string settingOf(int device, const char* name, const char* otherwise);

long number(const char* name, long otherwise);

}  // namespace emulator
