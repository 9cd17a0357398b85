/** The plan command and its answer. */
@NullMarked
package dev.penstock.runtime.cli.plan;

import org.jspecify.annotations.NullMarked;
