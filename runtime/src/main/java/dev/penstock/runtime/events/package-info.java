/**
 * The event log of a run: what happened, a line each, from which the dashboard is drawn while the
 * run lives or later. Appended to and never rewritten; whoever reads it gets on with a file that is
 * cut off anywhere.
 */
@NullMarked
package dev.penstock.runtime.events;

import org.jspecify.annotations.NullMarked;
