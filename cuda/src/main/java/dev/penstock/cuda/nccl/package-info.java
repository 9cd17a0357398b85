/**
 * NCCL, NVIDIA's library of collectives, by {@code java.lang.foreign}, where the machine has it.
 * Start with {@link dev.penstock.cuda.nccl.Nccl}.
 */
@NullMarked
package dev.penstock.cuda.nccl;

import org.jspecify.annotations.NullMarked;
