/** A small disk for the tests of what happens when one is full. */
@NullMarked
package dev.penstock.runtime.disk;

import org.jspecify.annotations.NullMarked;
