/**
 * From a configuration to the order of work that it names: generated or read from a file, lowered
 * and proved.
 */
@NullMarked
package dev.penstock.runtime.config.order;

import org.jspecify.annotations.NullMarked;
