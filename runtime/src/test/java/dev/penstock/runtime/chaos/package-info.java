@NullMarked
package dev.penstock.runtime.chaos;

import org.jspecify.annotations.NullMarked;
