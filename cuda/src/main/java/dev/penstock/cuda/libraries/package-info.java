/** Finding NVIDIA's libraries, which are used where a machine has them. */
@NullMarked
package dev.penstock.cuda.libraries;

import org.jspecify.annotations.NullMarked;
