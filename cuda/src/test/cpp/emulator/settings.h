// What tests may set: environment variables PENSTOCK_EMULATOR_<NAME>, or penstockEmulatorSet at run time.
#pragma once
#include <string>

namespace emulator {

// DEVICES: how many; MEMORY_MIB: of each; THREAD_ORDER: forward, reverse or shuffled:SEED, one
// for all devices or one each with commas between;
// FAIL_LAUNCH: device:n, the n-th launch from now fails; LOSE_DEVICE: device:n, it is lost at that launch;
// LOSE_AT_CALL: device:n, it is lost at the n-th call that has to do with it, giving back included; HANG: device:n, that launch never ends;
// BLOCK_MILLIS: how long every block of a kernel waits before it runs, so that work of other streams comes between;
// REFUSE_PTX: the driver takes no PTX and no machine code; MISSING: a kernel that modules do not have; DRIVER: its version, 13000 for 13.0;
// STREAMS: late, streams do only what somebody waits for or asks about, in the order of the waits; copies, the same, but each copy
// at once, after what its stream has to wait for; kernels, the same of kernels. Without: all streams at the same time;
// COPY_MILLIS: how long every copy lasts at least, so that who does not wait for it is found out;
// LOSE_AT_COPY: device:n, it is lost while the n-th copy of its streams between devices runs; LOSE_AT_HOST_COPY: the same of
// copies to and from the host; NO_PEERS: no device sees another's memory;
// SAME_GPU: all devices are one, as if each were seen by a process of its own;
// CHECKED: libpenstock-checked.so, whose kernels say what they read and write (check.h);
// CAPABILITY: the major number of theirs; LACKS_EPILOGUE: the number of one for which cublasLt has no algorithm;
// WRONG_EPILOGUE: of one whose results are half of what they should be.
std::string setting(const char* name, const char* otherwise);

// Of a list with commas between, the one of this device, or the last.
std::string settingOf(int device, const char* name, const char* otherwise);

long number(const char* name, long otherwise);

}  // namespace emulator
