/**
 * ZeRO (Rajbhandari et al., arXiv 1910.02054) over the replicas of a stage: sums of gradients, and
 * parameters that come before they are needed and go after. What is sharded is the stage's affair.
 */
@NullMarked
package dev.penstock.actors.zero;

import org.jspecify.annotations.NullMarked;
