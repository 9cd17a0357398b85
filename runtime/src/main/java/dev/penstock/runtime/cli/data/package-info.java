/** The {@code data} commands: prepared tokens. */
@NullMarked
package dev.penstock.runtime.cli.data;

import org.jspecify.annotations.NullMarked;
