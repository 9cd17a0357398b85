/** Passes from schedule to schedule: what the runtime needs beside the computation. */
@NullMarked
package dev.penstock.schedules.lower;

import org.jspecify.annotations.NullMarked;
