/** The init command. */
@NullMarked
package dev.penstock.runtime.cli.init;

import org.jspecify.annotations.NullMarked;
