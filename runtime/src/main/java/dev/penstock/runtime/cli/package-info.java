/**
 * The program: {@link dev.penstock.runtime.cli.Main} starts the command line, whose commands are in
 * the packages below. Only they write to the terminal.
 */
@NullMarked
package dev.penstock.runtime.cli;

import org.jspecify.annotations.NullMarked;
