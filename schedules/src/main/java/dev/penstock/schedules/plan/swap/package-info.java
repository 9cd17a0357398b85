/**
 * Cuts a model that is larger than a device's memory into segments that pass through it, one
 * loading while another computes (ATOM, arXiv 2403.10504, section 4).
 */
@NullMarked
package dev.penstock.schedules.plan.swap;

import org.jspecify.annotations.NullMarked;
