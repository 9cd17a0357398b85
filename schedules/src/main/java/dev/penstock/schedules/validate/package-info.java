/**
 * The judge: proves a lowered schedule complete, consistent, free of deadlock and within memory;
 * knows no generator.
 */
@NullMarked
package dev.penstock.schedules.validate;

import org.jspecify.annotations.NullMarked;
