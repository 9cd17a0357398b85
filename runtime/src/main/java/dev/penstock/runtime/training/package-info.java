/**
 * From what somebody asks for to a run that trains, or to the loss of one that has: what the
 * command line and programs share, without a word for either.
 */
@NullMarked
package dev.penstock.runtime.training;

import org.jspecify.annotations.NullMarked;
