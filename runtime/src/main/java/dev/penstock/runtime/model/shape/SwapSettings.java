package dev.penstock.runtime.model.shape;

import java.nio.file.Path;

/**
 * Where a rank's parameters, gradients and optimizer state lie while they are not in its memory.
 *
 * @param folder of the run; every stage of a replica has one of its own below
 * @param dropsPages whether what was written or read leaves the page cache at once, as far as the
 *     operating system can be told; otherwise that keeps what it has room for
 */
public record SwapSettings(Path folder, boolean dropsPages) {}
