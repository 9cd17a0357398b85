/**
 * What a supervisor must not forget when it dies: the run, its epoch, its commits, its checkpoints.
 */
@NullMarked
package dev.penstock.actors.journal;

import org.jspecify.annotations.NullMarked;
