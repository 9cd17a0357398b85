/**
 * Orders in which the replicas of a pipeline share their micro-batches stage by stage: by speed,
 * around ranks that are gone, or at random.
 */
@NullMarked
package dev.penstock.schedules.generate.wired;

import org.jspecify.annotations.NullMarked;
