/**
 * The configuration of a run: one record per section, each key declared once as a record component;
 * reading, checking and writing are derived from those declarations. Start with {@link
 * dev.penstock.runtime.config.run.RunConfig}.
 */
@NullMarked
package dev.penstock.runtime.config.run;

import org.jspecify.annotations.NullMarked;
