/** Tests of the oneDNN binding. */
@NullMarked
package dev.penstock.cuda.onednn;

import org.jspecify.annotations.NullMarked;
