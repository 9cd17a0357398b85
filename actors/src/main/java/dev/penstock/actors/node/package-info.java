/**
 * One node per process: it announces itself and hosts the ranks that the supervisor places on it.
 */
@NullMarked
package dev.penstock.actors.node;

import org.jspecify.annotations.NullMarked;
