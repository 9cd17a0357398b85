/**
 * Zero-bubble orders with split backwards (Qi et al., arXiv 2401.10241): H1, H2, and orders
 * searched under a memory limit.
 */
@NullMarked
package dev.penstock.schedules.generate.zerobubble;

import org.jspecify.annotations.NullMarked;
