/** The runs below a folder of this machine: what became of them, and how to be rid of them. */
@NullMarked
package dev.penstock.runtime.runs;

import org.jspecify.annotations.NullMarked;
