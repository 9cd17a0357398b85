/** Tests of finding and calling cuBLAS, an emulated one. */
@NullMarked
package dev.penstock.cuda.cublas;

import org.jspecify.annotations.NullMarked;
