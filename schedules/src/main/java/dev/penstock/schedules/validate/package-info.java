/**
 * The judge: proves a schedule complete, consistent, free of deadlock and within memory; knows no
 * generator and no pass. Start with {@link dev.penstock.schedules.validate.ScheduleValidator}.
 */
@NullMarked
package dev.penstock.schedules.validate;

import org.jspecify.annotations.NullMarked;
