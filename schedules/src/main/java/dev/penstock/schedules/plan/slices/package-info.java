/**
 * Where to cut sequences into token slices, and batches with them: TeraPipe's dynamic programme (Li
 * et al., arXiv 2102.07988, section 3.3) over measured or modelled costs.
 */
@NullMarked
package dev.penstock.schedules.plan.slices;

import org.jspecify.annotations.NullMarked;
