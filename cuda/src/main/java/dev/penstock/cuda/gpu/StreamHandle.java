package dev.penstock.cuda.gpu;

import jcuda.driver.CUstream;

/** A stream that libraries beside JCuda can be told. */
final class StreamHandle extends CUstream {
    /** The driver's {@code CUstream}. */
    long handle() {
        return getNativePointer();
    }
}
