package dev.penstock.actors.supervisor;

import java.util.Optional;

/**
 * What came of {@link Effect.Publish}.
 *
 * @param nanos from the first shard's order to the end
 * @param failure why the checkpoint could not be published
 */
public record Publication(long step, long bytes, long nanos, Optional<String> failure) {}
