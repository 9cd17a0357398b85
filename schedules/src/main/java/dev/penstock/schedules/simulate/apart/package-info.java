/** What replicas that take steps alone gain in time: steps and exchanges of their parameters. */
@NullMarked
package dev.penstock.schedules.simulate.apart;

import org.jspecify.annotations.NullMarked;
