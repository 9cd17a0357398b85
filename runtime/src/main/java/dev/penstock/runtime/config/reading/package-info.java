/**
 * Reads configurations in HOCON: where a value stands, what is wrong with it, all problems at once.
 * A key is a record component with {@link dev.penstock.runtime.config.reading.Setting}.
 */
@NullMarked
package dev.penstock.runtime.config.reading;

import org.jspecify.annotations.NullMarked;
