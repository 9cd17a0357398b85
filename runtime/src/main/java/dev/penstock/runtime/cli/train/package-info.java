/** Commands that compute with a model: train, generate, evaluate, chaos. */
@NullMarked
package dev.penstock.runtime.cli.train;

import org.jspecify.annotations.NullMarked;
