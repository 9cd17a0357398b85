/**
 * Orders over a V-shaped placement, where a rank holds one stage of the way down and one of the way
 * up: ZB-V, V-Half and V-Min (Qi et al., arXiv 2405.15362), DualPipeV.
 */
@NullMarked
package dev.penstock.schedules.generate.vshaped;

import org.jspecify.annotations.NullMarked;
