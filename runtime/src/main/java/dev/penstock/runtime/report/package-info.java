/**
 * What remains to look at when a run is over: curves, the Gantt of a step beside the simulated one,
 * a trace, and one self-contained page that holds them. Names, paths and texts of a run are
 * untrusted everywhere here.
 */
@NullMarked
package dev.penstock.runtime.report;

import org.jspecify.annotations.NullMarked;
