/** The way in: {@link dev.penstock.cuda.Devices} opens a device from its settings. */
@NullMarked
package dev.penstock.cuda;

import org.jspecify.annotations.NullMarked;
