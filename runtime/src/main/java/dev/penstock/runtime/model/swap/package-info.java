/**
 * The state of a rank's parameters while it is not in the device's memory: files of a folder, of
 * which a commit decides what is valid (ATOM, arXiv 2403.10504).
 */
@NullMarked
package dev.penstock.runtime.model.swap;

import org.jspecify.annotations.NullMarked;
