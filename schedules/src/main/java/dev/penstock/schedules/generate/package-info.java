/**
 * Generators of schedules, one file per plain family: compute ops only, pure functions of the
 * shape. Families that split backwards are in {@code generate.zerobubble}, those that fold the
 * pipeline in {@code generate.vshaped}. Start with {@link
 * dev.penstock.schedules.generate.OneForwardOneBackward}.
 */
@NullMarked
package dev.penstock.schedules.generate;

import org.jspecify.annotations.NullMarked;
