/** Collectives that a library runs on devices, such as NCCL. */
@NullMarked
package dev.penstock.actors.collective.library;

import org.jspecify.annotations.NullMarked;
