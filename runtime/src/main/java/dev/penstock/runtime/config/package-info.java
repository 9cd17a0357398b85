/**
 * The configuration of a run: one record per section, each key declared once as a record component
 * with {@link dev.penstock.runtime.config.Setting}; reading, checking and writing are derived from
 * those declarations. Start at {@link dev.penstock.runtime.config.RunConfig}.
 */
@NullMarked
package dev.penstock.runtime.config;

import org.jspecify.annotations.NullMarked;
