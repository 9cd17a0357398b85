/** Orders proved in tests of JUnit 5: see {@link dev.penstock.junit.ProvedOrder}. */
@NullMarked
package dev.penstock.junit;

import org.jspecify.annotations.NullMarked;
