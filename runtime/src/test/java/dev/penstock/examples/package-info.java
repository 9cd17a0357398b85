/** The examples of the library's documentation, which {@code ExamplesTest} runs. */
@NullMarked
package dev.penstock.examples;

import org.jspecify.annotations.NullMarked;
