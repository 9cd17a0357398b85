/** The {@code tokenizer} commands. */
@NullMarked
package dev.penstock.runtime.cli.tokenizer;

import org.jspecify.annotations.NullMarked;
