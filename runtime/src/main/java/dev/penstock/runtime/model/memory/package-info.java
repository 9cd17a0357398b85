/**
 * Scopes of a stage's device memory: real ones, ones that only count, and one that is mapped from
 * files.
 */
@NullMarked
package dev.penstock.runtime.model.memory;

import org.jspecify.annotations.NullMarked;
