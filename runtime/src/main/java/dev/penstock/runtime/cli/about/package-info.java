/** Commands about Penstock itself: machine, configuration keys, manual pages, shell completion. */
@NullMarked
package dev.penstock.runtime.cli.about;

import org.jspecify.annotations.NullMarked;
