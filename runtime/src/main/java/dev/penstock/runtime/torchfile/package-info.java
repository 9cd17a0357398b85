/**
 * Reads the files that {@code torch.save} writes of a dictionary of tensors, without running
 * anything that is in them: a zip container, a table of contents in a few of pickle's opcodes, and
 * raw elements. Start with {@link dev.penstock.runtime.torchfile.TorchFile}.
 */
@NullMarked
package dev.penstock.runtime.torchfile;

import org.jspecify.annotations.NullMarked;
