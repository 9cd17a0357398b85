/**
 * A page that shows a run, live or long gone: an event log is followed, folded into what there is
 * to see, and served on loopback. It only reads files, so nothing here can hurt a run.
 */
@NullMarked
package dev.penstock.runtime.dashboard;

import org.jspecify.annotations.NullMarked;
