/**
 * The devices of a process as configured: which GPU a rank gets, what its kernels need, and what
 * happens when a GPU is lost.
 */
@NullMarked
package dev.penstock.runtime.launch.devices;

import org.jspecify.annotations.NullMarked;
