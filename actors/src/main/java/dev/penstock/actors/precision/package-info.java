/** What a run does so that narrow gradients neither vanish nor overflow: it scales the loss. */
@NullMarked
package dev.penstock.actors.precision;

import org.jspecify.annotations.NullMarked;
