// The other half of cuBLAS, which must be loaded before it: libcublas.so.13 needs it by name and says no path.
extern "C" __attribute__((visibility("default"))) unsigned long cublasLtGetVersion() { return 130000; }
