/** Writes a first configuration for a text of one's own, with sizes that fit text and machine. */
@NullMarked
package dev.penstock.runtime.starter;

import org.jspecify.annotations.NullMarked;
