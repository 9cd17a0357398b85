/** Commands about a run's directory: top, ui, report, export. */
@NullMarked
package dev.penstock.runtime.cli.run;

import org.jspecify.annotations.NullMarked;
