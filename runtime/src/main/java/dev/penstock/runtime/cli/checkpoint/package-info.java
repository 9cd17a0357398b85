/** Commands about checkpoints: inspect, verify, convert, export. */
@NullMarked
package dev.penstock.runtime.cli.checkpoint;

import org.jspecify.annotations.NullMarked;
