/**
 * The command line: one class per command, started by {@link dev.penstock.runtime.cli.Main}. The
 * only package that writes to the terminal.
 */
@NullMarked
package dev.penstock.runtime.cli;

import org.jspecify.annotations.NullMarked;
