package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.kernels.Dynamic8;

/** The form in which the optimizer's moments lie in memory. */
public enum OptimizerState {
    /** Both in F32. */
    FLOAT32,
    /**
     * 8 bits each, in blocks with a scale (Dettmers et al. 2022, arXiv 2110.02861), except those of
     * tables whose rows are looked up: their gradients differ too much from row to row (section
     * 2.3). Blocks are counted in each parameter as a rank holds it, so they do not depend on its
     * place in a group, nor on the parts that replicas have.
     */
    INT8;

    private static final int LINE_ELEMENTS = 16;

    /** Elements, in a group of parameters, between places where a parameter or a part may begin. */
    public int unit() {
        return this == INT8 ? Dynamic8.BLOCK : LINE_ELEMENTS;
    }

    /** Bytes of one of the moments of some elements that begin at such a place. */
    public long bytes(long elements) {
        return this == INT8
                ? Math.ceilDiv(elements, (long) Dynamic8.BLOCK)
                        * DType.DYNAMIC8.rowStride(Dynamic8.BLOCK)
                : elements * DType.F32.bytes();
    }
}
