/**
 * What all generators share: the pipeline under construction, the requirements on its shape,
 * options and costs, the lengths of token slices.
 */
@NullMarked
package dev.penstock.schedules.generate.base;

import org.jspecify.annotations.NullMarked;
